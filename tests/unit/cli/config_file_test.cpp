// SPDX-License-Identifier: MIT
#include "cli/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

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
  std::vector<std::string> spans;
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
  EXPECT_THAT(parse("lisen = x\n"), testing::AllOf(testing::HasSubstr("lisen"), testing::HasSubstr("agent.conf")));
  EXPECT_THAT(parse("max-groups = 99\n"), testing::HasSubstr("max-groups"));
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
