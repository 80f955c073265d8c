// SPDX-License-Identifier: MIT
#include "cli/output_name.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(OutputName, HasHostTimeAndSuffixByDefault) {
  EXPECT_THAT(default_file_name(".fxt"), MatchesRegex("rtev-.+-[0-9]{8}-[0-9]{6}\\.fxt"));
}

TEST(OutputName, IsAnotherOneIfTheFileExists) {
  const test::TempDir directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  // A second may pass between two names: then both are new.
  std::set<std::string> names;
  for (int i = 0; i < 4; ++i) {
    const std::string name = default_file_name(".fxt");
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(name, MatchesRegex("rtev-.+-[0-9]{8}-[0-9]{6}(-[2-4])?\\.fxt"));
    std::ofstream(name).put('x');
  }
  std::filesystem::current_path(before);
}

TEST(OutputName, SuffixDecidesTheFormatOfAStreamUnlessItIsGiven) {
  EXPECT_EQ(format_of_output("x.pftrace.gz", {}, Format::text), Format::pftrace);
  EXPECT_EQ(format_of_output("x", {}, Format::fxt), Format::fxt);
  EXPECT_EQ(format_of_output("-", Format::fxt, Format::text), Format::fxt);
  EXPECT_EQ(format_of_output("x.data", Format::fxt, Format::text), Format::fxt);
  EXPECT_EQ(format_of_output("x.json", {}, Format::text), Format::chrome);
  EXPECT_EQ(format_of_output("x.json", Format::jsonl, Format::text), Format::jsonl);
  EXPECT_EQ(format_of_output("x.log", Format::brief, Format::text), Format::brief);
}

TEST(OutputName, SuffixOfAnotherFormatIsRefused) {
  const auto unknown = format_of_output("x.foo", {}, Format::text);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message(), HasSubstr("no format has the suffix '.foo'"));
  const auto profile = format_of_output("x.speedscope.json", {}, Format::text);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message(), "cannot write to x.speedscope.json: this is the name of a profile");
  EXPECT_THAT(profile.error().hint, HasSubstr("rtev-bpf profile -o FILE"));
  EXPECT_EQ(format_of_output("x.speedscope.json", Format::chrome, Format::text), Format::chrome);
  const auto other = format_of_output("x.fxt.gz", Format::pftrace, Format::text);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message(), "cannot write to x.fxt.gz: its suffix is that of fxt, and -f asks for pftrace");
  EXPECT_EQ(other.error().hint, "omit -f, or give a file with the suffix .pftrace");
}

TEST(OutputName, SuffixDecidesWhetherAReportIsJson) {
  for (const char* const path : {"", "-", "report", "dir.d/report", "x.txt", "x.log"})
    EXPECT_EQ(is_json_output(path, {}), false) << path;
  for (const char* const path : {"x.json", "x.jsonl"}) EXPECT_EQ(is_json_output(path, {}), true) << path;
  for (const char* const path : {"-", "report", "x.json", "x.data"})
    EXPECT_EQ(is_json_output(path, true), true) << path;
  EXPECT_EQ(is_json_output("x.data", false), false);
}

TEST(OutputName, FilesThatAreNoReportsHaveTheirSuffixes) {
  constexpr std::string_view others[]{".html", ".pb.gz", ".x.json"};
  for (const char* const path : {"a.html", "a.pb.gz", "a.x.json"}) {
    EXPECT_EQ(is_json_output(path, {}, others), false) << path;
    EXPECT_FALSE(is_json_output(path, true, others)) << path;
  }
  EXPECT_EQ(is_json_output("a.json", {}, others), true);
  const auto refused = is_json_output("a.foo", {}, others);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("other files are .html, .pb.gz, .x.json"));
}

TEST(OutputName, SuffixOfAnotherFormatIsRefusedForReports) {
  const auto expect_refused = [](const char* path, std::optional<bool> asked) {
    const auto is_json = is_json_output(path, asked);
    ASSERT_FALSE(is_json) << path;
    EXPECT_THAT(is_json.error().hint, HasSubstr(".txt, .log or no suffix")) << path;
  };
  for (const char* const path : {"x.html", "x.fxt", "x.json.gz", "x.pftrace", "x.\033"}) expect_refused(path, {});
  EXPECT_THAT(is_json_output("x.html", {}).error().hint, HasSubstr("; rtev-bpf report -o FILE.html"));
  EXPECT_THAT(is_json_output("x.csv", {}).error().hint, HasSubstr("; rtev-bpf record -o FILE.csv "));
  EXPECT_THAT(is_json_output("x.csv", {}).error().hint, HasSubstr("rtev-bpf convert -o FILE.csv "));
  for (const char* const path : {"x.txt", "x.fxt"}) expect_refused(path, true);
  for (const char* const path : {"x.json", "x.fxt"}) expect_refused(path, false);
}

TEST(OutputName, SvgIsAFlameGraph) {
  for (const auto& error : {format_of_output("x.svg", {}, Format::text).error(), is_json_output("x.svg", {}).error()})
    EXPECT_THAT(error.hint, HasSubstr("rtev-bpf profile -o FILE.html")) << error.message();
}

}  // namespace
}  // namespace rtev::cli
