// SPDX-License-Identifier: MIT
// What latency writes, and when.
#include <gmock/gmock.h>

#include "support/golden.hpp"
#include "unit/analysis/latency/latency_fixture.hpp"

namespace rtev {
namespace {

using test::a_thread, test::competitor, test::enters, test::leaves, test::nobody;
using test::Events, test::phase_major, test::phase_minor, test::World;
using testing::HasSubstr, testing::Not;

using nlohmann::json;

TEST_F(LatencyTest, TheEndOfTheRunTellsTheRest) {
  make({.format = LatencyOptions::Format::json});
  pause(100, 10);
  feed(Events{world.slot}.add(start + 200, EventKind::begin, phase_major));
  RunSummary summary;
  summary.end_ns = start + 5000;
  summary.drops = {{"switch", 3}, {"exec", 100}, {"wakeup", 4}};
  summary.rings_missed = 2;
  latency->summary(summary, world.registry);
  ASSERT_EQ(written().size(), 1U);
  const json last = written()[0];
  EXPECT_EQ(last["start_ns"], start);
  EXPECT_EQ(last["end_ns"], start + 5000);
  EXPECT_EQ(last["scheduler_seen"], false);
  EXPECT_EQ(last["scheduler_dropped"], 7);
  EXPECT_EQ(last["rings_missed"], 2);
  EXPECT_EQ(last["lower_bound"], true);
  EXPECT_EQ(last["all"]["unfinished"]["ended"], 1);
}

TEST_F(LatencyTest, IntervalsAreReportedWhenNothingHappens) {
  make({.format = LatencyOptions::Format::json, .interval_ns = 1000});
  latency->advance(start - 50, world.registry);  // what is held back is of before the start
  latency->advance(start + 999, world.registry);
  EXPECT_TRUE(output.text().empty());
  latency->advance(start + 1000, world.registry);
  ASSERT_EQ(written().size(), 2U);
  EXPECT_EQ(written()[0]["report"], "interval");
  EXPECT_EQ(written()[0]["start_ns"], start);
  EXPECT_EQ(written()[0]["end_ns"], start + 1000);
  EXPECT_EQ(written()[0]["all"]["count"], 0);
  EXPECT_EQ(written()[1]["report"], "so_far");
  latency->advance(start + 1999, world.registry);
  EXPECT_EQ(written().size(), 2U);
  pause(1500, 10);
  latency->advance(start + 2100, world.registry);
  ASSERT_EQ(written().size(), 4U);
  EXPECT_EQ(written()[2]["all"]["count"], 1);
  EXPECT_EQ(written()[2]["end_ns"], start + 2000);
}

TEST_F(LatencyTest, DomainsThatCannotBeFollowedAreSaid) {
  // More than are followed at once, of files with 4096 rings each.
  constexpr std::size_t most = PauseFinder::Limits{}.domains, rings = 4096;
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
  ASSERT_EQ(written().size(), 2U);
  EXPECT_EQ(written()[0]["report"], "interval");
  EXPECT_EQ(written()[0]["start_ns"], start);
  EXPECT_EQ(written()[0]["end_ns"], start + 1000);
  EXPECT_EQ(written()[0]["all"]["total_ns"], 30);
  EXPECT_EQ(written()[1]["report"], "so_far");
  EXPECT_EQ(written()[1]["all"]["total_ns"], 30);
  pause(5500, 40);  // those in which nothing came are told as one
  pause(6100, 50);
  ASSERT_EQ(written().size(), 8U);
  EXPECT_EQ(written()[2]["start_ns"], start + 1000);
  EXPECT_EQ(written()[2]["end_ns"], start + 2000);
  EXPECT_EQ(written()[2]["all"]["total_ns"], 30);
  EXPECT_EQ(written()[2]["processes"][0]["domains"][0]["count"], 1);
  EXPECT_EQ(written()[3]["all"]["total_ns"], 60);
  EXPECT_EQ(written()[4]["start_ns"], start + 2000);
  EXPECT_EQ(written()[4]["end_ns"], start + 5000);
  EXPECT_EQ(written()[4]["all"]["count"], 0);
  EXPECT_EQ(written()[5]["all"]["total_ns"], 60);
  EXPECT_EQ(written()[6]["start_ns"], start + 5000);
  EXPECT_EQ(written()[6]["end_ns"], start + 6000);
  EXPECT_EQ(written()[6]["all"]["total_ns"], 40);
  EXPECT_EQ(written()[7]["end_ns"], start + 6000);
  latency->summary({}, world.registry);
  EXPECT_EQ(written()[8]["report"], "run");
  EXPECT_EQ(written()[8]["all"]["total_ns"], 150);
}

TEST_F(LatencyTest, TextIsAligned) {
  const Thread thread = a_thread(4242, 4242, 0);
  add(10, enters(thread));
  for (std::uint64_t i = 1; i <= 1000; ++i) pause(i * 1'000'000, i * 999);
  pause(1'001'000'000, 1'250'000, 1);
  EXPECT_EQ(text(), test::golden("analysis/golden/latency.txt"));
}

TEST_F(LatencyTest, FullTextHasEveryDomain) {
  make({.full = true});
  pause(100, 10, 0);
  pause(200, 20, 1);
  EXPECT_THAT(text(), HasSubstr("\nprocess 4242 server\n  count 2 "));
  EXPECT_THAT(text(), HasSubstr("\nprocess 4242 server, domain 1\n  count 1  total 20ns "));
  EXPECT_THAT(text(), HasSubstr("no scheduler events"));
  EXPECT_THAT(text(), Not(HasSubstr("RUNNABLE")));
}

TEST_F(LatencyTest, NamesAreEscaped) {
  for (const std::string& name : test::hostile_strings()) {
    ProcessInfo& facts = world.registry.process(world.process);
    facts.comm = facts.exe = name;
    for (const bool full : {false, true}) {
      make({.full = full});
      pause(100, 10);
      for (const char c : text()) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ');
      EXPECT_NO_THROW(report());
    }
    EXPECT_EQ(std::ranges::count(latency->report_json(world.registry), '\n'), 1);
  }
}

}  // namespace
}  // namespace rtev
