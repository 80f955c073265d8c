// SPDX-License-Identifier: MIT
// What the templates of completions are filled with. tests/completions tries the result in the shells.
#include "completions/shell_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command_line.hpp"
#include "load/load_options.hpp"

namespace rtev::completions {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

constexpr auto all_shells = {Shell::bash, Shell::zsh, Shell::fish};

std::string filled(const CLI::App& program, Shell shell) {
  const auto text = fill_completion("@options@\n", program, shell);
  EXPECT_TRUE(text) << text.error().message();
  return text.value_or("");
}

void expect_options(const std::string& text, const CLI::App& app, Shell shell) {
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      EXPECT_THAT(text, HasSubstr((shell == Shell::fish ? "-l " : "--") + name)) << app.get_name();
  }
}

TEST(Completions, HaveEachOptionOfRtevBpf) {
  const cli::CommandLine command_line;
  const CLI::App& app = command_line.app();
  for (const Shell shell : all_shells) {
    const std::string text = filled(app, shell);
    expect_options(text, app, shell);
    for (const CLI::App* const command : app.get_subcommands({})) {
      EXPECT_THAT(text, HasSubstr(command->get_name()));
      expect_options(text, *command, shell);
    }
  }
}

TEST(Completions, HaveEachOptionOfRtevLoad) {
  load::LoadOptions options;
  CLI::App app;
  set_up_command_line(app, options);
  for (const Shell shell : all_shells) expect_options(filled(app, shell), app, shell);
}

class TextsOfTool : public testing::Test {
 protected:
  TextsOfTool() {
    app_.formatter(std::make_shared<HelpFormatter>());
    CLI::Option* const option =
        app_.add_option("-k,--kind", text_, "it's [a]: \\kind; not a word more")->type_name("A:B");
    set_values(app_, *option, {.words = {"one", "two"}});
  }

  std::string text_;
  CLI::App app_{"", "a-tool"};
};

TEST_F(TextsOfTool, AreQuotedForEachShell) {
  EXPECT_THAT(filled(app_, Shell::zsh),
              HasSubstr(R"('(-k --kind)'{-k+,--kind=}'[it'\''s \[a\]\: \\kind]:A\:B:(one two)')"));
  EXPECT_THAT(filled(app_, Shell::fish), HasSubstr(R"( -s k -l kind -x -a 'one two' -d 'it\'s [a]: \\kind')"));
  EXPECT_THAT(filled(app_, Shell::bash), AllOf(HasSubstr("options='-h --help -k --kind'"),
                                               HasSubstr("*:--kind | *:-k) _a_tool_words one two ;;")));
}

TEST_F(TextsOfTool, ReplaceNamesInTheTemplate) {
  EXPECT_EQ(fill_completion("@PROGRAM@ @FUNCTION@_pids @PROGRAM@\n", app_, Shell::bash),
            "a-tool _a_tool_pids a-tool\n");
}

TEST_F(TextsOfTool, NeedTheFormatterThatKnowsValues) {
  app_.formatter(std::make_shared<CLI::Formatter>());
  EXPECT_FALSE(fill_completion("@options@\n", app_, Shell::bash));
}

}  // namespace
}  // namespace rtev::completions
