// SPDX-License-Identifier: MIT
// Streams that lack something or make no sense: figures say so, and never come out absurd.
#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

TEST_F(StatsTest, EndsWithoutBeginsAddNothing) {
  life(100, Lifecycle::ring_start);
  end(200, "minor");
  end(300, "stw_leader");
  span(400, 410, "stw_leader");
  const StatsFigures found = figures().figures;
  EXPECT_EQ(found.gc_ns, 10);
  EXPECT_EQ(found.minor_collections, 0);
  EXPECT_EQ(found.stw_led, 1);
}

TEST_F(StatsTest, BeginsWithoutEndsDoNotGrow) {
  life(100, Lifecycle::ring_start);
  begin(200, "stw_leader");
  begin(210, "minor");  // never ends
  end(300, "stw_leader");
  life(1000, Lifecycle::ring_stop);
  EXPECT_EQ(figures().figures.gc_ns, 100);
}

TEST_F(StatsTest, APauseThatGoesOnCountsAsFarAsItGot) {
  life(100, Lifecycle::ring_start);
  begin(200, "stw_leader");
  begin(500, "minor");
  EXPECT_EQ(figures().figures.gc_ns, 300);
  end(600, "minor");
  end(700, "stw_leader");
  life(800, Lifecycle::ring_stop);
  EXPECT_EQ(figures().figures.gc_ns, 500);
}

TEST_F(StatsTest, APauseInWhichTheProcessEndsCountsUntilThen) {
  life(100, Lifecycle::ring_start);
  begin(200, "stw_leader");
  process(600, ProcessAction::exit, 9);
  const StatsFigures found = figures().figures;
  EXPECT_EQ(found.gc_ns, 400);
  EXPECT_FALSE(found.missing.any());
}

TEST_F(StatsTest, LossesMakeLowerBounds) {
  life(100, Lifecycle::ring_start);
  begin(200, "stw_leader");
  span(210, 300, "minor");
  lose(300, 900, 50);
  end(950, "stw_leader");
  span(1000, 1100, "major");
  life(1200, Lifecycle::ring_stop);
  span(1000, 1100, "major", 1);
  const ProcessStats process = figures();
  const StatsFigures& lossy = process.domains[0].figures;
  EXPECT_EQ(lossy.gc_ns, 200);  // 200 to 300, where the last event was, and 1000 to 1100
  EXPECT_EQ(lossy.losses, 1);
  EXPECT_EQ(lossy.lost_words, 50);
  EXPECT_TRUE(lossy.missing.lost);
  EXPECT_FALSE(process.domains[1].figures.missing.any());
  EXPECT_TRUE(process.figures.missing.lost);
  EXPECT_EQ(process.figures.lost_words, 50);
  EXPECT_TRUE(stats.report(world.registry).total.missing.lost);
}

TEST_F(StatsTest, ADomainWhoseSpawnWasLostIsNotTheOneBefore) {
  life(100, Lifecycle::domain_spawn, 1);
  span(110, 120, "minor", 1);
  lose(120, 500, 10, 1);
  life(600, Lifecycle::domain_spawn, 1);
  span(610, 620, "minor", 1);
  const ProcessStats process = figures();
  ASSERT_EQ(process.domains.size(), 2);
  EXPECT_TRUE(process.domains[0].figures.missing.lost);
  EXPECT_EQ(process.domains[1].incarnation, 2);
  EXPECT_FALSE(process.domains[1].figures.missing.any());
}

TEST_F(StatsTest, PausedEventsMakeLowerBounds) {
  span(100, 200, "stw_leader");
  process(300, ProcessAction::pause);
  process(400, ProcessAction::resume);
  EXPECT_TRUE(figures().figures.missing.paused);
  EXPECT_TRUE(figures().domains.front().figures.missing.paused);
}

TEST_F(StatsTest, AResumeInTheRingTellsOfAPauseThatWasNotSeen) {
  span(100, 200, "stw_leader");
  life(300, Lifecycle::ring_resume);
  EXPECT_TRUE(figures().figures.missing.paused);
}

TEST_F(StatsTest, AClockThatGoesBackMakesNothingNegative) {
  life(1000, Lifecycle::ring_start);
  begin(2000, "stw_leader");
  end(1500, "stw_leader");
  span(1400, 1300, "major");
  const StatsFigures found = figures().figures;
  EXPECT_LE(found.gc_ns, found.domain_ns);
  EXPECT_LE(found.wall_ns, 1000);
  EXPECT_LE(*found.gc_share(), 1);
}

TEST_F(StatsTest, TimesAtTheEdgesOfTheClock) {
  feed(Events(world.slot).add(0, EventKind::begin, phase("stw_leader")));
  feed(Events(world.slot).add(UINT64_MAX, EventKind::end, phase("stw_leader")));
  const StatsFigures found = figures().figures;
  EXPECT_EQ(found.wall_ns, UINT64_MAX);
  EXPECT_EQ(found.gc_ns, UINT64_MAX);
  EXPECT_DOUBLE_EQ(*found.gc_share(), 1);
}

TEST_F(StatsTest, ImpossibleCountersSaturate) {
  for (std::uint64_t i = 0; i < 4; ++i) count(10 + i, "minor_allocated", UINT64_MAX);
  count(20, "major_heap_words", UINT64_MAX, 0);
  count(30, "major_heap_words", 7, 0);
  const StatsFigures found = figures().figures;
  EXPECT_EQ(found.minor_words, UINT64_MAX / 8);
  EXPECT_EQ(found.heap[0]->last, 7);
}

TEST_F(StatsTest, UnknownIdsOnlyCountAsEvents) {
  feed(Events(world.slot).add(10, EventKind::begin, 8191).add(20, EventKind::end, 8191));
  feed(Events(world.slot).add(30, EventKind::counter, 8191, 5).add(40, EventKind::lifecycle, 77));
  EXPECT_EQ(figures().figures.events, 4);
}

TEST_F(StatsTest, ARingThatOverwroteItsPastGivesLowerBounds) {
  world.registry.process(world.process).words.before_attach = 10;
  span(100, 200, "minor");
  stats.summary({.whole_ring = true}, world.registry);
  EXPECT_TRUE(figures().figures.missing.before);
  EXPECT_TRUE(figures().domains.at(0).figures.missing.before);
  EXPECT_NE(stats_text(stats.report(world.registry), false).find("lower bound: the ring was partly overwritten"),
            std::string::npos);
  EXPECT_NE(stats_json(stats.report(world.registry)).find("\"because\":[\"before\"]"), std::string::npos);
  stats.summary({}, world.registry);
  EXPECT_FALSE(figures().figures.missing.any());
}

}  // namespace
}  // namespace rtev::test
