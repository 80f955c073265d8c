// SPDX-License-Identifier: MIT
// What latency writes, and when.
#include <gmock/gmock.h>

#include "analysis/report_text.hpp"
#include "base/utf8.hpp"
#include "support/files.hpp"
#include "unit/analysis/latency/latency_fixture.hpp"

namespace rtev {
namespace {

using test::a_thread, test::enters, test::Events, test::phase_major;
using testing::ElementsAre, testing::HasSubstr, testing::Not;

using nlohmann::json;

/// A report of this time since the start, with this time in pauses.
auto reported(const char* report, std::uint64_t from, std::uint64_t to, std::uint64_t total_ns) {
  return HasMembers(
      json{{"report", report}, {"start_ns", start + from}, {"end_ns", start + to}, {"all", {{"total_ns", total_ns}}}});
}

TEST_F(LatencyTest, TheEndOfTheRunReportsTheRest) {
  make({.format = LatencyOptions::Format::json});
  pause(100, 10);
  begin(200);
  RunSummary summary;
  summary.end_ns = start + 5000;
  summary.drops = {{"switch", 3}, {"exec", 100}, {"wakeup", 4}};
  summary.rings_missed = 2;
  latency->summary(summary, world.registry);
  ASSERT_EQ(written().size(), 1U);
  EXPECT_THAT(written()[0], HasMembers(R"({"start_ns":1000000,"end_ns":1005000,"scheduler_seen":false,
      "scheduler_dropped":7,"rings_missed":2,"lower_bound":true,"all":{"unfinished":{"ended":1}}})"_json));
}

TEST_F(LatencyTest, WithoutSchedulerEventsNoTimeOfAThreadIsZero) {
  pause(100, 10);
  latency->summary({.end_ns = start + 5000}, world.registry);
  EXPECT_THAT(report(), HasMembers(R"({"scheduler_dropped":null,
      "all":{"on_cpu":null,"runnable":null,"blocked":null,
             "time_ns":{"on_cpu":null,"runnable":null,"sleeping":null,"uninterruptible":null,"stopped":null,
                        "unknown":10}}})"_json));
}

TEST_F(LatencyTest, SleepsWithoutWakeupsIncludeWaitsForACpu) {
  RunHeader header{.start_ns = start};
  header.not_recorded.selection = "--events phase,switch";
  header.not_recorded.kinds.set(static_cast<std::size_t>(EventKind::wakeup));
  latency->header(header);
  pause(100, 10);
  SchedSwitch change{};
  change.next.tracked = true;
  add(200, change);
  latency->summary({.end_ns = start + 5000}, world.registry);
  EXPECT_THAT(text(),
              testing::HasSubstr("wakeups were not recorded (--events phase,switch): time blocked includes waits"));
}

TEST_F(LatencyTest, IntervalsAreReportedWhenNothingHappens) {
  make({.format = LatencyOptions::Format::json, .interval_ns = 1000});
  latency->advance(start - 50, world.registry);  // what is held back is of before the start
  latency->advance(start + 999, world.registry);
  EXPECT_TRUE(output.text().empty());
  latency->advance(start + 1000, world.registry);
  EXPECT_THAT(written(), ElementsAre(reported("interval", 0, 1000, 0), reported("so_far", 0, 1000, 0)));
  latency->advance(start + 1999, world.registry);
  EXPECT_EQ(written().size(), 2U);
  pause(1500, 10);
  latency->advance(start + 2100, world.registry);
  ASSERT_EQ(written().size(), 4U);
  EXPECT_THAT(written()[2], reported("interval", 1000, 2000, 10));
}

TEST_F(LatencyTest, DomainsThatCannotBeFollowedAreSaid) {
  // More than are followed at once, of files with 4096 rings each.
  constexpr std::size_t most = PauseFinder::max_domains, rings = 4096;
  for (std::size_t i = 0; i < most / rings; ++i) {
    test::Events events{world.add_ring(world.process)};
    for (std::size_t domain = 0; domain < rings; ++domain)
      events.add(start + 10, EventKind::begin, test::phase_major, 0, static_cast<std::uint16_t>(domain));
    feed(events);
  }
  EXPECT_EQ(report()["ignored_events"], 0);
  pause(100, 10);
  EXPECT_EQ(report()["ignored_events"], 1);
  EXPECT_EQ(report()["lower_bound"], true);
  EXPECT_NE(text().find("1 phase ignored (too many domains)"), std::string::npos);
}

TEST_F(LatencyTest, IntervalsAreReportedAsTheStreamPasses) {
  make({.format = LatencyOptions::Format::json, .interval_ns = 1000});
  pause(100, 10);
  pause(900, 20);
  EXPECT_TRUE(output.text().empty());
  pause(1100, 30);
  EXPECT_EQ(written().size(), 2U);
  pause(5500, 40);  // intervals without events are reported as one
  pause(6100, 50);
  latency->summary({}, world.registry);
  EXPECT_THAT(written(), ElementsAre(reported("interval", 0, 1000, 30), reported("so_far", 0, 1000, 30),
                                     reported("interval", 1000, 2000, 30), reported("so_far", 0, 2000, 60),
                                     reported("interval", 2000, 5000, 0), reported("so_far", 0, 5000, 60),
                                     reported("interval", 5000, 6000, 40), reported("so_far", 0, 6000, 100),
                                     reported("run", 0, 6150, 150)));
  EXPECT_EQ(written()[2]["processes"][0]["domains"][0]["count"], 1);
}

TEST(KnownShare, BesideUnknownTimeIsALowerBoundAndNever0) {
  const auto share = [](std::uint64_t part, std::uint64_t unknown) {
    const auto [text, is_bound] = known_share(part, 1000, unknown);
    return text + (is_bound ? "+" : "");
  };
  EXPECT_EQ(share(70, 930), "7%+");
  EXPECT_EQ(share(0, 930), "-");
  EXPECT_EQ(share(0, 0), "0%");
  EXPECT_EQ(share(999, 1), ">99%") << "so little changes no share";
}

TEST_F(LatencyTest, TextIsAligned) {
  const Thread thread = a_thread(4242, 4242, 0);
  add(10, enters(thread));
  for (std::uint64_t i = 1; i <= 1000; ++i) pause(i * 1'000'000, i * 999);
  pause(1'001'000'000, 1'250'000, 1);
  EXPECT_EQ(text(), test::golden("analysis/golden/latency.txt"));
}

TEST_F(LatencyTest, FullTextHasAllPercentiles) {
  make({.full = true});
  const Thread thread = a_thread(4242, 4242, 0);
  add(10, enters(thread));
  for (std::uint64_t i = 1; i <= 1000; ++i) pause(i * 1'000'000, i * 999);
  pause(1'001'000'000, 1'250'000, 1);
  EXPECT_EQ(text(), test::golden("analysis/golden/latency_full.txt"));
}

TEST_F(LatencyTest, TextFitsATerminal) {
  const Thread thread = a_thread(4242, 4242, 0);
  add(10, enters(thread));
  for (std::uint16_t domain = 0; domain < 60; ++domain)
    for (std::uint64_t i = 1; i <= 20; ++i)
      pause(std::uint64_t{domain} * 1'000'000'000 + i * 12'345'678, i * 345'678, domain);
  const auto expect_fits = [&] {
    const std::string report = text();
    EXPECT_LE(std::ranges::count(report, '\n'), 22) << report;
    for (std::size_t begin = 0; begin < report.size(); begin = report.find('\n', begin) + 1)
      EXPECT_LE(columns_of(report.substr(begin, report.find('\n', begin) - begin)), 100u) << report;
  };
  expect_fits();
  EXPECT_THAT(text(), HasSubstr("  and 50 more"));
  for (int i = 0; i < 50; ++i) {
    const std::uint32_t slot = world.add_ring(add_process(4'000'000 + i, "a-name-of-15-" + std::to_string(10 + i)));
    pause(70'000'000'000, 1'000'000, 0, phase_major, slot);
  }
  expect_fits();
  EXPECT_THAT(text(), HasSubstr("  others  "));
}

TEST_F(LatencyTest, IntervalsAreLines) {
  make({.interval_ns = 1'000'000'000});
  pause(100'000'000, 10'000'000);
  pause(1'500'000'000, 20'000'000);
  pause(3'500'000'000, 1);
  latency->summary({}, world.registry);
  const std::string text = output.text();
  EXPECT_THAT(text, testing::StartsWith("TIME          PID COMM                COUNT "));
  EXPECT_THAT(text, HasSubstr("\n1.0          4242 server                  1   10.0ms        -        -   10.0ms "));
  EXPECT_THAT(text, HasSubstr("\n2.0          4242 server                  1   20.0ms "));
  EXPECT_THAT(text, HasSubstr("\n3.0             - no pauses\n"));
  EXPECT_THAT(text, HasSubstr("\n\n3 GC pauses of server/4242 in ")) << "at the end the whole run";
}

TEST_F(LatencyTest, LinesOfIntervals) {
  make({.interval_ns = 1'000'000'000});
  const std::uint32_t slot = world.add_ring(add_process(777, "worker"));
  add(10, enters(a_thread(4242, 4242, 0)));
  for (std::uint64_t i = 1; i <= 39; ++i) {
    pause(i * 100'000'000, (i % 13 + 1) * 123'456);
    if (i > 15) pause(i * 100'000'000 + 50'000'000, 45'678, 0, phase_major, slot);
  }
  latency->summary({}, world.registry);
  EXPECT_EQ(output.text(), test::golden("analysis/golden/latency_interval.txt"));
}

TEST_F(LatencyTest, Json) {
  add(10, enters(a_thread(4242, 4242, 0)));
  for (std::uint64_t i = 1; i <= 1000; ++i) pause(i * 1'000'000, i * 999);
  pause(1'001'000'000, 1'250'000, 1);
  EXPECT_EQ(report(), nlohmann::json::parse(test::golden("analysis/golden/latency.json")));
}

TEST_F(LatencyTest, FullTextHasEveryDomain) {
  make({.full = true});
  pause(100, 10, 0);
  pause(200, 20, 1);
  EXPECT_THAT(text(), HasSubstr("\nserver/4242\n  count 2 "));
  EXPECT_THAT(text(), HasSubstr("\nserver/4242, domain 1\n  count 1  total 20ns "));
  EXPECT_THAT(text(), HasSubstr("no scheduler events"));
  EXPECT_THAT(text(), Not(HasSubstr("RUNNABLE")));
}

TEST_F(LatencyTest, NamesAreEscaped) {
  for (const std::string& name : test::hostile_strings()) {
    ProcessInfo& info = world.registry.process(world.process);
    info.comm = info.exe = name;
    for (const bool full : {false, true}) {
      make({.full = full});
      pause(100, 10);
      for (const char c : text()) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ');
      EXPECT_NO_THROW(report());
    }
    EXPECT_EQ(std::ranges::count(latency->report_json(world.registry), '\n'), 1);
  }
}

TEST_F(LatencyTest, TextSaysWhatTheRunLacks) {
  pause(100, 10);
  world.registry.process(world.process).missed.gone = 1;
  latency->summary({.end_ns = start + 5000, .late = 2, .rings_missed = 1}, world.registry);
  EXPECT_THAT(report(), HasMembers(R"({"processes":[{"lower_bound":true,"domains":[{"lower_bound":true}]}]})"_json));
  EXPECT_THAT(text(), HasSubstr("missing: 1 ring that was not read to its end; 2 events out of order"));
  EXPECT_THAT(text(), HasSubstr("counts and totals are at least this high"));
}

TEST_F(LatencyTest, ProcessesWithoutPausesAreCounted) {
  pause(100, 10);
  pause(200, 10, 0, test::phase_major, world.add_ring(add_process(7, "other")));
  EXPECT_THAT(text(), HasSubstr("2 GC pauses of 2 processes in "));
  feed(test::Events{world.add_ring(add_process(8, "idle"))}.add(start + 300, Lifecycle::domain_spawn, 1));
  EXPECT_THAT(text(), HasSubstr("2 GC pauses of 2 of 3 processes in "));
  make({});
  feed(test::Events{world.slot}.add(start + 300, Lifecycle::domain_spawn, 1));
  EXPECT_THAT(text(), HasSubstr("0 GC pauses of 1 process in "));
}

TEST(LatencyText, ManyProcessesOfAProgramHaveOneRow) {
  LatencyReport report{.end_ns = 1'000'000'000};
  for (std::int32_t pid = 1; pid <= 6; ++pid) {
    LatencyFigures figures;
    figures.record(1, 1'000'000, TimeSplit{.unknown = 1'000'000});
    report.all.merge(figures);
    report.processes.push_back(
        {.pid = pid, .comm = "worker", .exe = "/bin/worker", .figures = figures, .domains = {{.figures = figures}}});
  }
  const std::string text = latency_text(report, false);
  EXPECT_THAT(text, HasSubstr("6 processes of worker"));
  EXPECT_THAT(text, HasSubstr(" x6  worker"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 6) << text;
  report.by_process = true;
  EXPECT_THAT(latency_text(report, false), Not(HasSubstr("x6")));
}

}  // namespace
}  // namespace rtev
