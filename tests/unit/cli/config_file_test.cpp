// SPDX-License-Identifier: MIT
#include "cli/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "base/option_types.hpp"
#include "support/temp_dir.hpp"

namespace rtev::cli {
namespace {

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() {
    CLI::App* const sub = app.add_subcommand("agent");
    add_config_option(*sub);
    sub->add_option("--listen", listen);
    sub->add_option("--max-groups", groups)->check(CLI::Range(1, 10));
    sub->add_option("--user-spans", spans)->delimiter(',')->expected(1)->take_all();
    CLI::Option* const otlp = sub->add_option("--otlp", url);
    sub->add_option("--interval", interval)->needs(otlp);
    const auto accept = [this](const std::string& text) {
      if (text != "bogus") conditions.push_back(text);
      return text != "bogus";
    };
    add_parsed_option(*sub, "--on", "COND", "a condition", accept, "")->take_all();
    sub->add_flag("-q,--quiet", quiet);
    sub->add_flag("--verbose", verbose);
  }
  /// Empty if it is accepted.
  std::string parse(const std::string& file, std::vector<std::string> arguments = {}) {
    const std::string path = dir / "agent.conf";
    std::ofstream(path) << file;
    arguments.insert(arguments.begin(), {"agent", "--config", path});
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return {};
  }

  test::TempDir dir;
  CLI::App app;
  std::string listen = "default", url;
  int groups = 5, interval = 0;
  std::vector<std::string> spans, conditions;
  bool quiet = false, verbose = false;
};

TEST_F(ConfigFileTest, KeysAreOptions) {
  EXPECT_EQ(parse("# a comment\n"
                  "listen = [::]:9464\n"
                  "max-groups=7\n"
                  "\n"
                  "user-spans = \"request,db.*\"\n"
                  "quiet = true\n"
                  "verbose = false\n"),
            "");
  EXPECT_EQ(listen, "[::]:9464");
  EXPECT_EQ(groups, 7);
  EXPECT_THAT(spans, testing::ElementsAre("request", "db.*"));
  EXPECT_TRUE(quiet);
  EXPECT_FALSE(verbose);
}

TEST_F(ConfigFileTest, WhatCanBeRepeatedHasALineForEachValue) {
  EXPECT_EQ(parse("on = pause>50ms\nmax-groups = 7\non = lost\n"), "");
  EXPECT_THAT(conditions, testing::ElementsAre("pause>50ms", "lost"));
}

TEST_F(ConfigFileTest, EachValueOnTheCommandLineIsTaken) {
  EXPECT_EQ(parse("", {"--on", "pause>50ms", "--on", "lost"}), "");
  EXPECT_THAT(conditions, testing::ElementsAre("pause>50ms", "lost"));
  EXPECT_THAT(parse("", {"--on", "lost", "--on", "bogus"}), testing::HasSubstr("'bogus' is not a condition"));
}

TEST_F(ConfigFileTest, TheCommandLineWins) {
  EXPECT_EQ(parse("listen = file\nmax-groups = 7\n", {"--listen", "command"}), "");
  EXPECT_EQ(listen, "command");
  EXPECT_EQ(groups, 7);
}

TEST_F(ConfigFileTest, NeedsMayBeMetByEither) {
  EXPECT_EQ(parse("otlp = http://x\n", {"--interval", "3"}), "");
  EXPECT_EQ(interval, 3);
}

TEST_F(ConfigFileTest, NeedsHoldInTheFile) {
  EXPECT_THAT(parse("interval = 3\n"), testing::HasSubstr("--otlp"));
}

TEST_F(ConfigFileTest, ErrorsNameTheKey) {
  EXPECT_THAT(parse("lisen = x\n"), testing::AllOf(testing::HasSubstr("'lisen'"), testing::HasSubstr("agent.conf:1: "),
                                                   testing::HasSubstr("did you mean listen?")));
  EXPECT_THAT(parse("# groups\nmax-groups = 99\n"),
              testing::AllOf(testing::HasSubstr("max-groups"), testing::HasSubstr("agent.conf:2: ")));
  EXPECT_THAT(parse("listen = a\n\nlisten = b\n"),
              testing::AllOf(testing::HasSubstr("agent.conf:3: "), testing::HasSubstr("set in line 1 already")));
  EXPECT_THAT(parse("on = lost\non = bogus\n"), testing::HasSubstr("'bogus' is not a condition"));
  EXPECT_THAT(parse("quiet = maybe\n"), testing::HasSubstr("quiet"));
  EXPECT_THAT(parse("config = other.conf\n"), testing::HasSubstr("config"));
  EXPECT_THAT(parse("replace = 1\n"), testing::HasSubstr("replace"));
  EXPECT_THAT(parse("[section]\nlisten = x\n"), testing::HasSubstr("[section]"));
}

TEST_F(ConfigFileTest, AFileThatCannotBeReadIsAnError) {
  EXPECT_THROW(app.parse({dir / "none.conf", "--config", "agent"}), CLI::ParseError);
}

}  // namespace
}  // namespace rtev::cli
