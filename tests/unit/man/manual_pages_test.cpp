// SPDX-License-Identifier: MIT
// The manual pages, before scdoc makes roff of them: each option of each subcommand is in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "cli/command_line.hpp"
#include "load/load_options.hpp"
#include "man/options_to_scdoc.hpp"
#include "rtev/version.hpp"

namespace rtev::man {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page(const std::string& name, const CLI::App& program) {
  std::ifstream input(RTEV_MAN + ("/" + name + ".scd.in"));
  EXPECT_TRUE(input) << name;
  auto filled = fill_template(std::string(std::istreambuf_iterator<char>(input), {}), program);
  EXPECT_TRUE(filled) << filled.error().message();
  return filled.value_or("");
}

/// The lines from a heading to the next one.
std::string section(const std::string& page, const std::string& heading) {
  const auto begin = page.find('\n' + heading + '\n');
  if (begin == std::string::npos) return {};
  return page.substr(begin, page.find("\n#", begin + heading.size()) - begin);
}

void expect_options(const std::string& text, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    EXPECT_THAT(text, ContainsRegex(option->get_name(option->get_positional()) + "[^a-z-]")) << app.get_name();
}

TEST(ManualPages, HaveEachOptionOfRtevBpf) {
  const cli::CommandLine command_line;
  const CLI::App& app = command_line.app();
  const std::string text = page("rtev-bpf.8", app);
  expect_options(section(text, "# OPTIONS"), app);
  for (const CLI::App* command : app.get_subcommands({}))
    expect_options(section(text, "## " + command->get_name()), *command);
  EXPECT_THAT(text, Not(HasSubstr("\n@")));
}

TEST(ManualPages, HaveEachOptionOfRtevLoad) {
  load::LoadOptions options;
  CLI::App app;
  set_up_command_line(app, options);
  expect_options(section(page("rtev-load.1", app), "# OPTIONS"), app);
}

TEST(ManualPages, EscapeTextAndListOptionsThatAreDescribedOnce) {
  CLI::App app("", "tool");
  std::string text;
  app.add_option("-a,--a_b", text, "*stars* and _lines_")->type_name("A_B");
  CLI::App* const command = app.add_subcommand("run", "run it");
  command->add_option("-a,--a_b", text, "*stars* and _lines_")->type_name("A_B");
  command->add_option("--other", text, "text");
  const auto filled = fill_template("v@VERSION@\n@options@\n@command run@\n", app);
  ASSERT_TRUE(filled) << filled.error().message();
  EXPECT_THAT(*filled, HasSubstr("v" RTEV_VERSION "\n"));
  EXPECT_THAT(*filled, HasSubstr("*\\-a, --a\\_b A\\_B*\n\t\\*stars\\* and \\_lines\\_.\n"));
  const std::string run = section(*filled, "## run");
  EXPECT_THAT(run, HasSubstr("--other"));
  EXPECT_THAT(run, HasSubstr("OPTIONS: "));
  EXPECT_THAT(run, Not(HasSubstr("stars")));
}

TEST(ManualPages, FailOnMistakesInTemplates) {
  CLI::App app("", "tool");
  app.add_subcommand("run", "run it");
  app.add_subcommand("walk", "walk it");
  for (const char* text :
       {"", "@command run@\n", "@command run@\n@command walk@\n@command fly@\n",
        "@command run@\n@command run@\n@command walk@\n", "@command run@\n@command walk@\n@option@\n"})
    EXPECT_FALSE(fill_template(text, app)) << text;
  EXPECT_TRUE(fill_template("@command run@\n@command walk@\n", app));
}

}  // namespace
}  // namespace rtev::man
