// SPDX-License-Identifier: MIT
// Collections, words and lives of domains in streams whose figures are known.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

class StatsBefore53Test : public StatsTest {
 protected:
  StatsBefore53Test() : StatsTest(Family::before_5_3) {}
};

TEST_F(StatsTest, NothingIsNothing) {
  const StatsReport report = stats.report(world.registry);
  EXPECT_EQ(report.process_count, 0);
  EXPECT_EQ(report.total.wall_ns, 0);
  EXPECT_EQ(report.total.gc_share(), std::nullopt);
  EXPECT_EQ(report.total.cpu_ns, std::nullopt);
}

TEST_F(StatsTest, TimeInNestedSpansCountsOnce) {
  life(1000, Lifecycle::ring_start);
  begin(1100, "interrupt_remote");
  begin(1110, "stw_handler");
  span(1120, 1180, "minor");
  end(1190, "stw_handler");
  end(1200, "interrupt_remote");
  span(1500, 1600, "stw_leader");
  life(2000, Lifecycle::ring_stop);

  const ProcessStats process = figures();
  ASSERT_EQ(process.domains.size(), 1);
  const StatsFigures& domain = process.domains.front().figures;
  EXPECT_EQ(domain.wall_ns, 1000);
  EXPECT_EQ(domain.gc_ns, 200);
  EXPECT_DOUBLE_EQ(*domain.gc_share(), 0.2);
  EXPECT_EQ(domain.stw_led, 1);
  EXPECT_EQ(domain.stw_followed, 1);
  EXPECT_EQ(domain.minor_collections, 1);
  EXPECT_EQ(domain.events, 10);
  EXPECT_FALSE(domain.missing.any());
}

TEST_F(StatsTest, WithoutACollectionWhatWasAllocatedIsUnknown) {
  EXPECT_EQ(stats.report(world.registry).total.known_minor_words(), 0) << "nothing ran";
  life(1000, Lifecycle::ring_start);
  life(2000, Lifecycle::domain_spawn, 1);
  EXPECT_EQ(figures().figures.known_minor_words(), std::nullopt);
  span(3000, 3100, "minor");
  count(3050, "minor_allocated", 0);
  ASSERT_EQ(figures().domains.size(), 2);
  EXPECT_EQ(figures().domains.front().figures.known_minor_words(), 0) << "it was empty";
  EXPECT_EQ(figures().figures.known_minor_words(), std::nullopt) << "that of the other one is unknown";
  count(3060, "minor_allocated", 8);
  EXPECT_EQ(figures().figures.known_minor_words(), 1);
  EXPECT_TRUE(figures().figures.minor_words_bound());
  EXPECT_EQ(figures().domains.back().figures.known_minor_words(), std::nullopt);
}

TEST_F(StatsTest, WaitingForConditionsIsNoGarbageCollection) {
  begin(100, "domain_condition_wait");
  span(200, 250, "stw_handler");
  end(900, "domain_condition_wait");
  EXPECT_EQ(figures().figures.gc_ns, 50);
}

TEST_F(StatsTest, ACollectionOfAllDomainsIsOneOfTheProcess) {
  for (std::uint16_t domain = 0; domain < 3; ++domain) {
    span(1000 + domain, 1100 + domain, "minor", domain);
    span(1200 + domain, 1300 + domain, "major_gc_stw", domain);
    span(1400 + domain, 1500 + domain, "compaction", domain);
    span(1600 + domain, 1700 + domain, "major_slice", domain);
  }
  span(2000, 2100, "minor", 0);
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.minor_collections, 2);
  EXPECT_EQ(process.figures.major_cycles, 1);
  EXPECT_EQ(process.figures.compactions, 1);
  EXPECT_EQ(process.figures.major_slices, 3);
  EXPECT_EQ(process.domains[0].figures.minor_collections, 2);
  EXPECT_EQ(process.domains[2].figures.minor_collections, 1);
}

TEST_F(StatsTest, ExplicitCallsAreCountedByKind) {
  span(10, 20, "explicit_gc_minor");
  span(30, 40, "explicit_gc_minor");
  span(50, 60, "explicit_gc_major_slice");
  span(70, 80, "explicit_gc_major");
  begin(90, "explicit_gc_stat");
  span(100, 110, "explicit_gc_full_major");
  end(120, "explicit_gc_stat");
  span(130, 140, "explicit_gc_compact");
  span(150, 160, "explicit_gc_set");
  EXPECT_EQ(figures().figures.explicit_calls, (std::array<std::uint64_t, explicit_phase_count>{2, 1, 1, 1, 1, 1, 1}));
}

TEST_F(StatsTest, CountersMeanWhatTheRuntimeMeans) {
  // Bytes, of one collection each.
  count(10, "minor_allocated", 8000);
  count(20, "minor_promoted", 800);
  count(30, "minor_allocated", 1600);
  count(40, "minor_promoted", 80);
  // Newer versions write both.
  count(50, "minor_allocated_words", 999);
  // Words since the last slice.
  count(60, "major_allocated_words", 110);
  count(70, "major_allocated_words", 40);
  // As it is at a time.
  count(80, "major_heap_words", 5000);
  count(90, "major_heap_words", 4000);
  count(95, "force_minor_make_vect", 1);
  const StatsFigures found = figures().figures;
  EXPECT_EQ(found.minor_words, 1200);
  EXPECT_EQ(found.promoted_words, 110);
  EXPECT_EQ(found.major_words, 150);
  ASSERT_TRUE(found.heap[0]);
  EXPECT_EQ(found.heap[0]->last, 4000);
  EXPECT_EQ(found.heap[0]->max, 5000);
  EXPECT_EQ(found.heap[1], std::nullopt);
  EXPECT_EQ(found.triggers[1], 1);
  EXPECT_EQ(trigger_counters()[1], "force_minor_make_vect");
}

TEST_F(StatsBefore53Test, IdsAreReadWithTheTableOfTheFamily) {
  span(10, 20, "minor");
  span(30, 40, "stw_handler");
  span(50, 60, "major_gc_stw");
  count(70, "minor_allocated", 80);
  // An id that only later versions have.
  feed(Events(world.slot).add(80, EventKind::counter, 18, 1234));
  const StatsFigures found = figures().figures;
  EXPECT_EQ(found.minor_collections, 1);
  EXPECT_EQ(found.stw_followed, 1);
  EXPECT_EQ(found.major_cycles, 1);
  EXPECT_EQ(found.minor_words, 10);
  EXPECT_EQ(found.major_words, std::nullopt);
}

TEST_F(StatsTest, HeapsOfDomainsAddUpWhileTheyLive) {
  count(10, "major_heap_words", 1000, 0);
  count(20, "major_heap_words", 500, 1);
  life(30, Lifecycle::domain_terminate, 1);
  count(40, "major_heap_words", 1200, 0);
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.heap[0]->last, 1200);
  EXPECT_EQ(process.figures.heap[0]->max, 1500);
  EXPECT_EQ(process.domains[1].figures.heap[0]->last, 500);
}

TEST_F(StatsTest, TheHeapOfAnEndedProcessStaysAsItWas) {
  count(10, "major_heap_words", 1000);
  process(20, ProcessAction::exit, exit_unseen);
  EXPECT_EQ(figures().figures.heap[0]->last, 1000);
}

TEST_F(StatsTest, UsedAgainDomainsAreOthers) {
  life(100, Lifecycle::domain_spawn, 1);
  span(150, 160, "stw_leader", 1);
  life(200, Lifecycle::domain_terminate, 1);
  begin(300, "stw_handler", 1);  // a domain may take part before it says that it is there
  end(320, "stw_handler", 1);
  life(350, Lifecycle::domain_spawn, 1);
  life(400, Lifecycle::domain_terminate, 1);
  life(500, Lifecycle::domain_spawn, 1);
  count(510, "minor_allocated", 8, 1);
  life(600, Lifecycle::domain_terminate, 1);

  const ProcessStats process = figures();
  ASSERT_EQ(process.domains.size(), 3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(process.domains[i].domain, 1);
    EXPECT_EQ(process.domains[i].incarnation, i + 1);
    EXPECT_TRUE(process.domains[i].ended);
    EXPECT_EQ(process.domains[i].figures.wall_ns, 100);
  }
  EXPECT_EQ(process.domains[0].figures.gc_ns, 10);
  EXPECT_EQ(process.domains[1].figures.gc_ns, 20);
  EXPECT_EQ(process.domains[2].figures.gc_ns, 0);
  EXPECT_EQ(process.domains[2].figures.minor_words, 1);
  EXPECT_EQ(process.domains[0].figures.events, 4);
  EXPECT_EQ(process.domains[1].figures.events, 4);
  EXPECT_EQ(process.figures.domain_ns, 300);
  EXPECT_EQ(process.figures.wall_ns, 500);
  EXPECT_DOUBLE_EQ(*process.figures.gc_share(), 0.1);
}

TEST_F(StatsTest, ADomainWithoutSpawnWasThereWhenItsRingWasOpened) {
  process(100, ProcessAction::found);
  process(200, ProcessAction::ring, 128);
  span(700, 800, "major", 3);
  begin(850, "stw_handler", 4);  // spawned since
  end(860, "stw_handler", 4);
  life(900, Lifecycle::domain_spawn, 4);
  life(1000, Lifecycle::ring_resume);
  const ProcessStats process = figures();
  EXPECT_EQ(process.domains[1].domain, 3);
  EXPECT_EQ(process.domains[1].figures.wall_ns, 800);
  EXPECT_EQ(process.domains[2].domain, 4);
  EXPECT_EQ(process.domains[2].figures.wall_ns, 150);
  EXPECT_EQ(process.figures.wall_ns, 900);
}

TEST_F(StatsTest, EventsFromBeforeTheProcessWasFoundBelongToIt) {
  span(100, 150, "stw_leader");
  process(200, ProcessAction::found);
  process(200, ProcessAction::ring, 128);
  process(300, ProcessAction::exit, 0);
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.wall_ns, 200);
  EXPECT_EQ(process.domains.front().figures.wall_ns, 200);
  EXPECT_DOUBLE_EQ(*process.figures.gc_share(), 0.25);
  EXPECT_TRUE(process.ended);
}

TEST_F(StatsTest, UserEventsCountByName) {
  world.user_names = {{1, "request"}, {2, "tick"}};
  feed(Events(world.slot)
           .add(10, EventKind::user_begin, 1)
           .add(20, EventKind::user_end, 1)
           .add(30, EventKind::user_int, 2, 5)
           .add(40, EventKind::user_unit, 2)
           .add_bytes(50, EventKind::user_custom, "abc", 3));
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.user_events, 4);
  EXPECT_EQ(process.figures.events, 5);
  ASSERT_EQ(process.user_events.size(), 3);
  EXPECT_EQ(process.user_events[0].name, "tick");
  EXPECT_EQ(process.user_events[0].count, 2);
  EXPECT_EQ(process.user_events[1].name, "request");
  EXPECT_EQ(process.user_events[1].count, 1);
  EXPECT_EQ(process.user_events[2].name, "");
}

TEST_F(StatsTest, SpansOfLibrariesCountByTheirNames) {
  world.user_names = {{1, "trace.span.enter"}, {2, "trace.span.exit"}, {3, "eio.fiber"},     {4, "eio.enter_span"},
                      {5, "eio.exit_span"},    {6, "request"},         {7, "eio.exit_fiber"}};
  feed(Events(world.slot)
           .add_bytes(10, EventKind::user_custom, "request", 1)
           .add(15, EventKind::user_begin, 6)
           .add_bytes(20, EventKind::user_custom, "parse", 1)
           .add_bytes(50, EventKind::user_custom, "request", 2)
           .add_bytes(60, EventKind::user_custom, "parse", 2)
           .add(65, EventKind::user_end, 6)
           .add_bytes(65, EventKind::user_custom, "never", 2)
           .add(70, EventKind::user_int, 3, 1)
           .add_bytes(70, EventKind::user_custom, "wait", 4)
           .add(71, EventKind::user_int, 3, 2)
           .add_bytes(80, EventKind::user_custom, "wait", 4)
           .add(90, EventKind::user_int, 7, 2)
           .add(91, EventKind::user_int, 3, 1)
           .add(95, EventKind::user_unit, 5));
  std::vector<std::string> found;
  for (const UserEventStats& user : figures().user_events)
    found.push_back(fmt::format("{} {} {}", user.name, user.count, user.durations.total()));
  EXPECT_THAT(found, testing::UnorderedElementsAre("request 1 40", "request 1 50", "parse 1 40", "eio.fiber 3 0",
                                                   "wait 2 25", "eio.exit_fiber 1 0"));
}

TEST_F(StatsTest, SpansOfLibrariesAreBounded) {
  world.user_names = {{1, "trace.span.enter"}, {2, "trace.span.exit"}};
  for (std::uint64_t i = 0; i < 1000; ++i)
    feed(Events(world.slot).add_bytes(i, EventKind::user_custom, std::to_string(i).append(1000, 'x'), 1));
  feed(Events(world.slot).add_bytes(2000, EventKind::user_custom, "0", 2));
  EXPECT_EQ(figures().user_events.size(), 64);
  EXPECT_EQ(figures().other_user_events, 1000 - 64);
}

TEST_F(StatsTest, ANameThatComesLaterIsTaken) {
  feed(Events(world.slot).add(10, EventKind::user_unit, 1));
  world.user_names = {{1, "late"}};
  feed(Events(world.slot).add(20, EventKind::user_unit, 1));
  EXPECT_EQ(figures().user_events.front().name, "late");
}

TEST_F(StatsTest, NamesOfUserEventsAreBounded) {
  for (std::uint16_t id = 0; id < 100; ++id) feed(Events(world.slot).add(10 + id, EventKind::user_unit, id));
  const ProcessStats process = figures();
  EXPECT_EQ(process.user_events.size(), 64);
  EXPECT_EQ(process.other_user_events, 36);
  EXPECT_EQ(process.figures.user_events, 100);
}

TEST_F(StatsTest, AllocationBucketsAddUpButForTheFirst) {
  std::array<std::uint64_t, alloc_bucket_count> flushed{};
  for (std::size_t i = 0; i < flushed.size(); ++i) flushed[i] = i + 1;
  feed(Events(world.slot).add_record(10, EventKind::alloc, flushed));
  flushed.front() = 5;  // the runtime never sets it back to zero
  feed(Events(world.slot).add_record(20, EventKind::alloc, flushed, 0, 1));
  feed(Events(world.slot).add_bytes(30, EventKind::alloc, "short"));
  const ProcessStats process = figures();
  ASSERT_TRUE(process.alloc_buckets);
  EXPECT_EQ(process.alloc_buckets->front(), 5);
  EXPECT_EQ((*process.alloc_buckets)[1], 4);
  EXPECT_EQ(process.alloc_buckets->back(), 40);
}

TEST_F(StatsTest, MemoryIsAFactOfTheStream) {
  const auto add = [&](std::uint64_t time, ProcessAction action) {
    feed(Events(0).add_record(time, EventKind::process, ProcessRecord{world.process, 0, 0},
                              static_cast<std::uint16_t>(action)));
  };
  add(10, ProcessAction::found);
  EXPECT_EQ(figures().max_rss_bytes, std::nullopt);
  world.registry.process(world.process).max_rss_bytes = 4096;
  add(20, ProcessAction::exit);
  EXPECT_EQ(figures().max_rss_bytes, 4096);
}

TEST_F(StatsTest, WhatEndedLongAgoIsFoldedTogether) {
  Stats bounded({.ended_processes = 4, .ended_domains = 3});
  for (std::uint64_t i = 0; i < 5; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = static_cast<std::int32_t>(100 + i);
    const ProcessIndex index = world.registry.add_process(info);
    Events events(world.add_ring(index));
    for (std::uint64_t life = 0; life < 10; ++life) {
      const std::uint64_t at = i * 10'000 + life * 100;
      events.add(at, Lifecycle::domain_spawn, 0, 1);
      events.add(at + 10, EventKind::begin, phase("stw_leader"), 0, 1);
      events.add(at + 20, EventKind::end, phase("stw_leader"), 0, 1);
      events.add(at + 40, Lifecycle::domain_terminate, 0, 1);
    }
    bounded.consume(events.batch(), world.registry);
    bounded.consume(Events(0)
                        .add_record(i * 10'000 + 5000, EventKind::process, ProcessRecord{index, 0, 0},
                                    static_cast<std::uint16_t>(ProcessAction::exit))
                        .batch(),
                    world.registry);
  }
  const StatsReport report = bounded.report(world.registry);
  EXPECT_EQ(report.process_count, 5);
  ASSERT_EQ(report.processes.size(), 3);
  EXPECT_EQ(report.other_process_count, 2);
  const ProcessStats& process = report.processes.front();
  EXPECT_EQ(process.domains.size(), 3);
  EXPECT_EQ(process.domains.front().incarnation, 8);
  EXPECT_EQ(process.other_domain_count, 7);
  EXPECT_EQ(process.other_domains.gc_ns, 70);
  EXPECT_EQ(process.other_domains.wall_ns, 280);
  EXPECT_EQ(process.figures.gc_ns, 100);
  EXPECT_EQ(process.figures.domain_ns, 400);
  EXPECT_EQ(process.figures.stw_led, 10);
  EXPECT_EQ(report.other_processes.gc_ns, 200);
  EXPECT_EQ(report.total.gc_ns, 500);
  EXPECT_DOUBLE_EQ(*report.total.gc_share(), 0.25);
}

TEST_F(StatsTest, ProcessesWithMostGarbageCollectionComeFirst) {
  span(10, 20, "major");
  const std::uint32_t other = world.add_ring(world.registry.add_process(World::default_info()));
  feed(Events(other).add(10, EventKind::begin, phase("major")).add(40, EventKind::end, phase("major")));
  const StatsReport report = stats.report(world.registry);
  ASSERT_EQ(report.processes.size(), 2);
  EXPECT_EQ(report.processes[0].figures.gc_ns, 30);
  EXPECT_EQ(report.total.gc_ns, 40);
  EXPECT_EQ(report.total.wall_ns, 30);
}

}  // namespace
}  // namespace rtev::test
