// SPDX-License-Identifier: MIT
// The HTML report: of real programs, and in a real browser.
#include <cstdlib>
#include <fstream>
#include <utility>

#include "live/analysis_fixture.hpp"
#include "support/files.hpp"
#include "support/html_report_data.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ReportLive : public AnalysisLive {
 protected:
  std::string made_report(const std::string& name, const std::string& everywhere, std::uint64_t rounds) {
    std::string path = dir / name;
    std::ofstream(path) << report_of_made_stream(everywhere, rounds);
    return path;
  }

  /// What happened to pages in a browser; empty if there is none here, which is a failure in CI.
  std::vector<Json> in_browser(const Strings& pages) {
    Strings command{"node", RTEV_CHECK_PAGES};
    command.insert(command.end(), pages.begin(), pages.end());
    Process browser({.argv = command, .env = {{"RTEV_AXE", RTEV_AXE}}});
    // Some seconds a page, but not on a loaded machine.
    const Outcome outcome = browser.wait(std::chrono::minutes(2));
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    return json_lines(outcome.out);
  }

  /// True if there is no browser: then the test is skipped, or fails in CI.
  static bool lacks_browser() {
    const std::string obstacle = browser_obstacle();
    EXPECT_TRUE(obstacle.empty() || std::getenv("CI") == nullptr) << obstacle;
    return !obstacle.empty();
  }
  static void expect_clean(const Json& page) {
    for (const char* const what : {"errors", "requests", "dialogs", "violations"})
      EXPECT_THAT(page[what], IsEmpty()) << page[what];
    EXPECT_TRUE(page["owned"].is_null());
    EXPECT_EQ(page["opens_by_key"], true);
    EXPECT_LE(page["narrow_width"], 400);
  }

  static std::string browser_obstacle() {
    if (!fs::exists(fs::path(RTEV_AXE) / "axe.min.js")) return "there is no axe-core in " RTEV_AXE;
    return std::system("command -v node chromium > /dev/null") == 0 ? "" : "node or chromium is not installed";
  }
};

TEST_F(ReportLive, ItsFiguresAreThoseOfTheOtherReports) {
  const Recorded recorded = record("run.fxt", {ocaml_program("collections"), "50", "20", "5", "2"});
  const std::string path = dir / "run.html";
  const Outcome outcome = run_tool({"report", "-i", recorded.path, "-o", path});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("wrote " + path));
  const Json data = report_data_of(read_file(path));
  for (const char* const name : {"stats", "latency", "pauses", "stalls"})
    EXPECT_EQ(data[name], report({name, "-i", recorded.path})) << name;
  EXPECT_GT(data["latency"]["all"]["count"], 0);
}

TEST_F(ReportLive, OfAProgramThatItStarts) {
  const std::string path = dir / "live.html";
  const Outcome outcome = run_tool({"report", "--stacks", "-o", path, "--", ocaml_program("collections"), "20"});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  const std::string html = read_file(path);
  const Json data = report_data_of(html);
  EXPECT_EQ(data["processes"], 1);
  EXPECT_EQ(data["input"], "");
  EXPECT_THAT(text_between(html, "<h2 id=\"findings\"", "</ul>"), HasSubstr("<h3>"));
}

TEST_F(ReportLive, OnlyHtmlIsWritten) {
  const Recorded recorded = record("short.fxt", {ocaml_program("hello")});
  const Outcome refused = run_tool({"report", "-i", recorded.path, "-o", dir / "report.json"});
  EXPECT_EQ(refused.status.code(), 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("give a file with the suffix .html"));
  const Outcome outcome = run_tool({"report", "-i", recorded.path, "-o", "-"});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("<!doctype html>"));
}

TEST_F(ReportLive, InABrowser) {
  if (lacks_browser()) GTEST_SKIP() << browser_obstacle();
  const std::string late = dir / "late.html";
  // At the end of its input the program goes on and on.
  run_tool({"report", "--stacks", "-o", late, "--", "sh", "-c", "exec timeout 2 \"$0\" 60 < /dev/null > /dev/null",
            ocaml_program("late_domain")});
  const std::string hostile =
      made_report("hostile.html", "</script><script>owned=1</script><img src=x onerror=owned=1>\x1b[2J\u202e", 30);
  const std::string empty = made_report("empty.html", "server", 0);

  const std::vector<Json> found = in_browser({late, hostile, empty});
  ASSERT_EQ(found.size(), 3U);
  for (const Json& page : found) {
    SCOPED_TRACE(page["page"]);
    expect_clean(page);
    EXPECT_THAT(
        page["text_without_scripts"].get<std::string>(),
        AllOf(AnyOf(HasSubstr("Something is wrong: "), HasSubstr("Worth a look: "), HasSubstr("It does well: ")),
              HasSubstr("Findings"), HasSubstr("longest pause"), HasSubstr("may run its script")));
    std::printf("%s: %s bytes, shown after %s ms\n", page["page"].dump().c_str(), page["bytes"].dump().c_str(),
                page["ready_ms"].dump().c_str());
  }
  EXPECT_THAT(found[0]["text"].get<std::string>(), HasSubstr("for domain 1 to stop"));
  EXPECT_THAT(found[0]["tab_stops"].dump(), HasSubstr("pauses"));
  EXPECT_THAT(found[1]["text"].get<std::string>(), HasSubstr("<img src=x onerror=owned=1>\\x1B[2J\\xE2\\x80\\xAE"));
  EXPECT_THAT(found[1]["text"].get<std::string>(), Not(HasSubstr("\u202e")));
  EXPECT_THAT(found[2]["text"].get<std::string>(), HasSubstr("No pauses"));
}

TEST_F(ReportLive, AFlameGraphInABrowser) {
  if (lacks_browser()) GTEST_SKIP() << browser_obstacle();
  const std::string path = dir / "flame.html";
  run_tool({"profile", "-o", path, "--", "sh", "-c", "exec \"$0\" 2000 < /dev/null > /dev/null",
            ocaml_program("busy_alloc")});
  const std::vector<Json> found = in_browser({path});
  ASSERT_EQ(found.size(), 1U);
  expect_clean(found[0]);
  const std::string plain = found[0]["text_without_scripts"], drawn = found[0]["text"];
  EXPECT_THAT(plain, AllOf(HasSubstr("CPU time of busy_alloc/"), HasSubstr("stand for"), HasSubstr("list.ml:"),
                           HasSubstr("may run its script")));
  EXPECT_THAT(drawn, AllOf(HasSubstr("stand for"), HasSubstr("the functions as a table"),
                           Not(HasSubstr("may run its script"))));
}

}  // namespace
}  // namespace rtev::test
