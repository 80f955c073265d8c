// SPDX-License-Identifier: MIT
// What the HTML report finds, and how it scores that.
#include "analysis/html_report/report_findings.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/html_report/html_report_sink.hpp"
#include "unit/analysis/html_report/html_report_stream.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ReportFindingsTest : public testing::Test {
 protected:
  const std::vector<Finding>& found(const std::string& input = "server.fxt") {
    sink_ = std::make_unique<HtmlReportSink>(HtmlReportOptions{.input = input});
    stream.run(*sink_);
    findings_ = sink_->report(world.registry).findings;
    return findings_;
  }
  /// The first one of a section of the report.
  Finding of(std::string_view section) {
    const auto at = std::ranges::find(findings_, section, &Finding::section);
    EXPECT_NE(at, findings_.end()) << section;
    return at != findings_.end() ? *at : Finding{};
  }

  World world;
  HtmlReportStream stream{world};

 private:
  std::unique_ptr<HtmlReportSink> sink_;
  std::vector<Finding> findings_;
};

TEST_F(ReportFindingsTest, TheWorstComesFirst) {
  const auto& findings = found();
  EXPECT_TRUE(std::ranges::is_sorted(findings, std::greater<>(), &Finding::score));
  EXPECT_EQ(findings.front().score, Score::bad);
  EXPECT_EQ(findings.front().section, "heap");
}

TEST_F(ReportFindingsTest, CyclesThatHaveStoppedAreBad) {
  stream.cycles = stream.rounds;
  for (const Finding& finding : found()) EXPECT_THAT(finding.title, testing::Not(HasSubstr("stopped")));
  stream.cycles = 30;
  const auto& findings = found();
  EXPECT_EQ(findings.front().score, Score::bad);
  EXPECT_EQ(findings.front().title, "Major cycles have stopped");
  EXPECT_THAT(findings.front().text, HasSubstr("until then they came at most 120ms apart"));
  stream.grows = false;
  for (const Finding& finding : found()) EXPECT_THAT(finding.title, testing::Not(HasSubstr("stopped")));
}

TEST_F(ReportFindingsTest, ALateDomainIsNamedWithItsCause) {
  found();
  const Finding pause = of("worst");
  EXPECT_EQ(pause.score, Score::warning);
  EXPECT_THAT(pause.title, HasSubstr("21.0ms"));
  EXPECT_THAT(pause.text, HasSubstr("for domain 1 to stop"));
  EXPECT_THAT(pause.text, HasSubstr("while others had CPU 1")) << "it is not known how long each of them";
  const Finding arrivals = of("arrivals");
  EXPECT_EQ(arrivals.score, Score::warning);
  EXPECT_THAT(arrivals.text, HasSubstr("waited for domain 1"));
}

TEST_F(ReportFindingsTest, CpusAreNotSaidToBeThereIfALongPauseHadNone) {
  const auto wait = [&] {
    const auto& findings = found();
    return *std::ranges::find_if(findings, [](const Finding& one) { return one.title.contains("for a CPU"); });
  };
  EXPECT_EQ(wait().score, Score::warning) << "the domain that is waited for has no CPU";
  EXPECT_EQ(wait().title, "Pauses waited up to 20.0ms for a CPU");
  stream.rounds = 9;
  EXPECT_EQ(wait().score, Score::ok) << "none is late";
}

TEST_F(ReportFindingsTest, UnknownTimeOfPausesIsNotCalledWaiting) {
  stream.sees_first = false;
  found();
  EXPECT_THAT(of("phases").text, testing::Not(HasSubstr("wait")));
}

TEST_F(ReportFindingsTest, AGrowingHeapIsNamedWithWhatWasCollected) {
  found();
  EXPECT_THAT(of("heap").text, HasSubstr("No major cycle ended, so nothing was freed"));
  stream.rounds = 60;
  found();
  EXPECT_EQ(of("heap").title, "Too short to tell whether a heap grows");
  stream.rounds = 120;
  stream.grows = false;
  found();
  EXPECT_EQ(of("heap").score, Score::ok);
}

TEST_F(ReportFindingsTest, ExplicitCollectionsAreCounted) {
  found();
  stream.collects = true;
  EXPECT_TRUE(std::ranges::any_of(found(), [](const Finding& finding) { return finding.section == "rates"; }));
  EXPECT_THAT(of("rates").title, HasSubstr("120 explicit calls"));
  EXPECT_THAT(of("rates").text, HasSubstr("called Gc.full_major 120 times. Each of these calls collects"));
  EXPECT_EQ(of("rates").score, Score::warning);
  stream.collects_by = "explicit_gc_set";
  found();
  EXPECT_THAT(of("rates").text, HasSubstr("called Gc.set 120 times. Gc.set collects the minor heap if"));
}

TEST_F(ReportFindingsTest, CommandsAreOfTheSameRecordingOrProgram) {
  for (const Finding& finding : found("a.fxt"))
    EXPECT_TRUE(!finding.command.contains("-i ") || finding.command.contains("-i a.fxt")) << finding.command;
  found("");
  EXPECT_EQ(of("heap").command, "rtev-bpf allocs -d 10s -n server");
  for (const std::string& name : hostile_strings()) {
    world.registry.process(world.process).name = name;
    found("");
    EXPECT_EQ(of("heap").command, "rtev-bpf allocs -d 10s");
  }
}

TEST_F(ReportFindingsTest, OfProcessesThatWereNotRecordedNothingIsSaid) {
  HtmlReportSink sink(HtmlReportOptions{});
  RunHeader header{.version = "1.2", .start_ns = 1};
  header.not_recorded.selection = "--events switch";
  for (const EventKind kind : {EventKind::process, EventKind::begin})
    header.not_recorded.kinds.set(static_cast<std::size_t>(kind));
  sink.header(header);
  sink.summary({.start_ns = 1, .end_ns = 1'000'000'000}, world.registry);
  const std::vector<Finding> findings = sink.report(world.registry).findings;
  for (const Finding& finding : findings) EXPECT_NE(finding.title, "No OCaml process was seen");
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings.front().text, HasSubstr("starts and ends of processes were not recorded (--events switch)"));
}

TEST_F(ReportFindingsTest, WithoutEventsItSaysSo) {
  stream.rounds = 0;
  const auto& findings = found();
  EXPECT_EQ(of("pauses").title, "No pauses");
  EXPECT_TRUE(std::ranges::all_of(findings, [](const Finding& one) { return one.score <= Score::info; }));
}

TEST_F(ReportFindingsTest, EachHasATitleATextAndASection) {
  stream.collects = true;
  for (const Finding& finding : found()) {
    EXPECT_THAT(finding.title, testing::Not(IsEmpty()));
    EXPECT_TRUE(finding.text.ends_with('.')) << finding.text;
    EXPECT_THAT(finding.section, testing::Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace rtev::test
