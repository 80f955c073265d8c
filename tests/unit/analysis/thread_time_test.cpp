// SPDX-License-Identifier: MIT
#include "analysis/thread_time.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev {

void PrintTo(const TimeSplit& split, std::ostream* out) {
  *out << "cpu " << split.on_cpu << " runnable " << split.runnable << " sleeping " << split.sleeping
       << " uninterruptible " << split.uninterruptible << " stopped " << split.stopped << " unknown " << split.unknown;
}

namespace {

using test::a_thread, test::competitor, test::enters, test::leaves, test::nobody, test::wakes;

const Thread worker = a_thread(100, 101, 1);
const Thread sibling = a_thread(100, 102, 2);

TEST(ThreadTime, SplitsTimeByWhatTheThreadDid) {
  ThreadTime time;
  const auto start = time.at(101, 50);
  time.add(100, enters(worker));
  time.add(130, leaves(worker, LeftState::preempted, 0, competitor()));
  time.add(180, enters(worker, 0, competitor()));
  time.add(200, leaves(worker, LeftState::sleeping));
  time.add(290, wakes(worker, sibling));
  time.add(300, enters(worker));
  time.add(310, leaves(worker, LeftState::uninterruptible));
  time.add(370, wakes(worker));
  time.add(371, enters(worker));
  time.add(380, leaves(worker, LeftState::stopped));
  EXPECT_EQ(ThreadTime::between(start, time.at(101, 400)), (TimeSplit{.on_cpu = 30 + 20 + 10 + 9,
                                                                      .runnable = 50 + 10 + 1,
                                                                      .sleeping = 90,
                                                                      .uninterruptible = 60,
                                                                      .stopped = 20,
                                                                      .unknown = 50}));
  EXPECT_EQ(time.contradictions(), 0U);
}

TEST(ThreadTime, SnapshotsWithinAStretchShareItOut) {
  ThreadTime time;
  time.add(100, enters(worker));
  const auto a = time.at(101, 110), b = time.at(101, 140);
  time.add(150, leaves(worker, LeftState::preempted, 0, competitor()));
  const auto c = time.at(101, 155);
  EXPECT_EQ(ThreadTime::between(a, b), (TimeSplit{.on_cpu = 30}));
  EXPECT_EQ(ThreadTime::between(b, c), (TimeSplit{.on_cpu = 10, .runnable = 5}));
  EXPECT_EQ(ThreadTime::between(c, a), TimeSplit{}) << "the wrong way round";
}

TEST(ThreadTime, KnowsNothingOfThreadsThatWereNotSeen) {
  ThreadTime time;
  const auto start = time.at(5, 10);
  EXPECT_EQ(ThreadTime::between(start, time.at(5, 30)), (TimeSplit{.unknown = 20}));
  EXPECT_EQ(time.current(5, 10), std::nullopt);
  time.add(10, enters(competitor()));
  EXPECT_EQ(time.size(), 0U) << "not of a traced process";
}

TEST(ThreadTime, SaysWhoTookTheCpuAndWhoWoke) {
  ThreadTime time;
  std::vector<ThreadStretch> stretches;
  time.on_stretch([&](const ThreadStretch& stretch) { stretches.push_back(stretch); });
  time.add(100, enters(worker, 3));
  time.add(110, leaves(worker, LeftState::preempted, 3, competitor()));
  const auto waiting = time.current(101, 115);
  time.add(120, enters(worker, 4, sibling));
  time.add(130, leaves(worker, LeftState::sleeping, 4));
  time.add(140, wakes(worker, sibling, 4));
  time.add(150, enters(worker, 3, competitor()));

  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->state, ThreadState::runnable);
  EXPECT_EQ(waiting->begin_ns, 110U);
  EXPECT_EQ(waiting->end_ns, 115U);
  EXPECT_EQ(waiting->taken_by->tid, 999);

  ASSERT_EQ(stretches.size(), 5U);
  EXPECT_EQ(stretches[0].state, ThreadState::on_cpu);
  EXPECT_EQ(stretches[0].cpu, 3);
  EXPECT_EQ(stretches[0].domain, 1);
  EXPECT_EQ(stretches[1].state, ThreadState::runnable);
  EXPECT_EQ(stretches[1].cpu, 3);
  EXPECT_EQ(stretches[1].taken_by->comm(), "hog");
  EXPECT_EQ(stretches[1].followed->tid, 102) << "on the cpu that it went to";
  EXPECT_EQ(stretches[2].cpu, 4) << "migrated";
  EXPECT_EQ(stretches[3].state, ThreadState::sleeping);
  EXPECT_EQ(stretches[3].taken_by, std::nullopt);
  EXPECT_EQ(stretches[4].state, ThreadState::runnable);
  EXPECT_EQ(stretches[4].woken_by->tid, 102);
  EXPECT_EQ(stretches[4].followed->tid, 999);
}

TEST(ThreadTime, AMissingEntryMakesTheTimeSinceUnknown) {
  ThreadTime time;
  time.add(100, enters(worker));
  time.add(110, leaves(worker, LeftState::sleeping));
  const auto start = time.at(101, 110);
  time.add(200, leaves(worker, LeftState::sleeping));
  EXPECT_EQ(ThreadTime::between(start, time.at(101, 205)), (TimeSplit{.sleeping = 5, .unknown = 90}));
  EXPECT_EQ(time.contradictions(), 1U);
}

TEST(ThreadTime, AMissingExitIsSeenFromTheCpu) {
  ThreadTime time;
  time.add(100, enters(worker, 2));
  const auto start = time.at(101, 100);
  time.add(150, enters(sibling, 2, competitor()));  // but the worker was there
  EXPECT_EQ(time.current(101, 160)->state, ThreadState::unknown);
  EXPECT_EQ(ThreadTime::between(start, time.at(101, 160)), (TimeSplit{.unknown = 60}));
  time.add(170, enters(worker, 1));
  const auto again = time.at(101, 170);
  EXPECT_EQ(ThreadTime::between(again, time.at(101, 180)), (TimeSplit{.on_cpu = 10}));
  EXPECT_EQ(time.contradictions(), 1U);
}

TEST(ThreadTime, WhatWasToldStands) {
  ThreadTime time;
  time.add(100, enters(worker));
  const auto a = time.at(101, 100), b = time.at(101, 150);
  EXPECT_EQ(ThreadTime::between(a, b), (TimeSplit{.on_cpu = 50}));
  time.add(200, enters(worker, 1));  // it must have left before
  const auto c = time.at(101, 200);
  EXPECT_EQ(ThreadTime::between(b, c), (TimeSplit{.unknown = 50}));
  EXPECT_EQ(ThreadTime::between(a, c), (TimeSplit{.on_cpu = 50, .unknown = 50}));
}

TEST(ThreadTime, AWakeupThatIsMissingMakesTheSleepUnknown) {
  ThreadTime time;
  time.add(90, wakes(sibling));
  time.add(100, enters(worker));
  time.add(110, leaves(worker, LeftState::sleeping));
  time.add(150, enters(worker));
  EXPECT_EQ(time.at(101, 150).since_0, (TimeSplit{.on_cpu = 10, .unknown = 100 + 40}));
}

TEST(ThreadTime, WithoutAnyWakeupAThreadSleepsUntilItRuns) {
  ThreadTime time;
  time.add(100, enters(worker));
  time.add(110, leaves(worker, LeftState::sleeping));
  time.add(150, enters(worker));
  EXPECT_EQ(time.at(101, 150).since_0, (TimeSplit{.on_cpu = 10, .sleeping = 40, .unknown = 100}));
  EXPECT_EQ(time.contradictions(), 0U);
}

TEST(ThreadTime, WokenOnItsWayOffTheCpuItNeverSleeps) {
  ThreadTime time;
  std::vector<ThreadStretch> stretches;
  time.on_stretch([&](const ThreadStretch& stretch) { stretches.push_back(stretch); });
  time.add(100, enters(worker));
  time.add(109, wakes(worker, sibling));
  time.add(110, leaves(worker, LeftState::sleeping));
  time.add(150, enters(worker));
  EXPECT_EQ(time.at(101, 150).since_0, (TimeSplit{.on_cpu = 10, .runnable = 40, .unknown = 100}));
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[1].woken_by->tid, 102);
  // The next sleep is one, although somebody woke it early once.
  time.add(160, leaves(worker, LeftState::sleeping));
  time.add(190, wakes(worker));
  time.add(191, enters(worker));
  EXPECT_EQ(time.at(101, 191).since_0.sleeping, 30U);
}

TEST(ThreadTime, LossesAreUnknownFromTheirBeginOn) {
  ThreadTime time;
  test::World world;
  const Loss loss{.words = 0, .from_ns = 140, .to_ns = 160};
  time.add(100, enters(worker, 0));
  time.add(110, enters(sibling, 1));
  test::Events events{0};
  events.add_record(160, EventKind::lost, loss, 0, first_sched_stream);
  time.add(events.batch().events().front(), events.batch(), world.registry);
  time.add(150, enters(competitor(), 1, sibling));
  time.add(170, leaves(worker, LeftState::sleeping, 0));
  EXPECT_EQ(time.at(101, 180).since_0, (TimeSplit{.on_cpu = 40, .sleeping = 10, .unknown = 100 + 30}));
  EXPECT_EQ(time.contradictions(), 0U) << "what was lost contradicts nothing";
}

TEST(ThreadTime, WhatIsSeenWhereEventsAreMissingProvesNothing) {
  ThreadTime time;
  test::World world;
  time.add(100, enters(worker, 0));
  // As the live stream has it: where the gap begins, with the end known.
  test::Events events{0};
  events.add_record(140, EventKind::lost, Loss{.words = 3, .from_ns = 140, .to_ns = 160},
                    static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream);
  time.add(events.batch().events().front(), events.batch(), world.registry);
  // It left the cpu and came back, and nobody saw it: these two do not say that it slept from 145 to 155.
  time.add(145, leaves(worker, LeftState::sleeping, 0));
  time.add(150, wakes(worker));
  time.add(155, enters(worker, 1));
  time.add(160, leaves(worker, LeftState::sleeping, 1));
  EXPECT_EQ(time.current(101, 165)->state, ThreadState::unknown);
  time.add(170, enters(worker, 0));
  EXPECT_EQ(time.at(101, 180).since_0, (TimeSplit{.on_cpu = 40 + 10, .unknown = 100 + 30}));
  EXPECT_EQ(time.contradictions(), 0U);
}

TEST(ThreadTime, GapsOfSeveralCpusOverlap) {
  ThreadTime time;
  time.add(100, enters(worker, 0));
  time.lose(120, 200);
  time.lose(130, 150);
  time.add(160, leaves(worker, LeftState::sleeping, 0));
  EXPECT_EQ(time.current(101, 210)->state, ThreadState::unknown) << "the first gap lasts until 200";
  time.add(210, enters(worker, 0));
  time.lose(220, 230);
  EXPECT_EQ(time.at(101, 240).since_0, (TimeSplit{.on_cpu = 20 + 10, .unknown = 100 + 90 + 20}));
}

TEST(ThreadTime, WhoDiesWhereEventsAreMissingIsForgotten) {
  ThreadTime time;
  time.add(100, enters(worker, 0));
  time.lose(120, 200);
  time.add(160, leaves(worker, LeftState::dead, 0));
  EXPECT_EQ(time.size(), 0U);
}

TEST(ThreadTime, LateEventsChangeOnlyWhatWasNotTold) {
  ThreadTime time;
  time.add(100, enters(worker));
  // Late, but nobody has asked yet.
  time.add(200, enters(competitor(), 5));
  time.add(150, leaves(worker, LeftState::preempted, 0, competitor()));
  EXPECT_EQ(time.at(101, 160).since_0, (TimeSplit{.on_cpu = 50, .runnable = 10, .unknown = 100}));
  // It was on the cpu from 155 to 158, and all that is told already.
  time.add(155, enters(worker));
  time.add(158, leaves(worker, LeftState::sleeping));
  EXPECT_EQ(time.at(101, 170).since_0, (TimeSplit{.on_cpu = 50, .runnable = 10, .sleeping = 10, .unknown = 100}));
  // The past cannot be told any more.
  const auto past = time.at(101, 150);
  EXPECT_FALSE(past.exact);
  EXPECT_EQ(ThreadTime::between(past, time.at(101, 180)), (TimeSplit{.unknown = 30}));
}

TEST(ThreadTime, ForgetsTheDeadAndTellsReusedTidsApart) {
  ThreadTime time;
  time.add(100, enters(worker));
  const auto alive = time.at(101, 110);
  time.add(120, leaves(worker, LeftState::dead));
  EXPECT_EQ(time.size(), 0U);
  const Thread heir = a_thread(100, 101, 3);
  time.add(130, enters(heir));
  EXPECT_EQ(ThreadTime::between(alive, time.at(101, 140)), (TimeSplit{.unknown = 30})) << "not the same thread";
  const Thread stranger = a_thread(200, 101);
  time.add(150, enters(stranger, 1));
  EXPECT_EQ(time.size(), 1U);
  EXPECT_EQ(time.current(101, 150)->pid, 200);
  time.add(160, leaves(a_thread(300, 301), LeftState::dead, 7));
  EXPECT_EQ(time.size(), 1U) << "the dead are not worth following";
}

TEST(ThreadTime, ForgetsProcessesThatEnd) {
  ThreadTime time;
  test::World world;
  const Thread main_thread = a_thread(4242, 4242), other = a_thread(4242, 4243);
  time.add(100, enters(main_thread, 0));
  time.add(100, enters(other, 1));
  time.add(100, enters(worker, 2));
  test::Events events{0};
  events.add_record(200, EventKind::process, ProcessRecord{world.process, 0, 0},
                    static_cast<std::uint16_t>(ProcessAction::exit));
  time.add(events.batch().events().front(), events.batch(), world.registry);
  EXPECT_EQ(time.size(), 1U);
  EXPECT_TRUE(time.current(101, 200));
}

TEST(ThreadTime, FollowsNoMoreThreadsThanItMay) {
  ThreadTime time{{.threads = 10}};
  for (std::int32_t tid = 1; tid <= 100; ++tid) time.add(100, wakes(a_thread(1, tid)));
  EXPECT_EQ(time.size(), 10U);
  const auto beyond = time.at(50, 100);
  EXPECT_EQ(ThreadTime::between(beyond, time.at(50, 110)), (TimeSplit{.unknown = 10}));
}

/// Whatever happens, in whatever order: no time is lost and none is made up.
TEST(ThreadTime, PartsAlwaysAddUp) {
  std::mt19937 random{42};
  const auto pick = [&](std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random);
  };
  for (int round = 0; round < 50; ++round) {
    ThreadTime time;
    std::map<std::int32_t, std::uint64_t> stretched;  // by tid
    time.on_stretch([&](const ThreadStretch& stretch) {
      ASSERT_LT(stretch.begin_ns, stretch.end_ns);
      stretched[stretch.tid] += stretch.end_ns - stretch.begin_ns;
    });
    std::map<std::int32_t, ThreadTime::Snapshot> marks;
    std::uint64_t now = 1000;
    for (int step = 0; step < 2000; ++step) {
      now += pick(20);
      const std::uint64_t when = pick(10) == 0 ? now - pick(100) : now;
      const auto tid = static_cast<std::int32_t>(1 + pick(6));
      const Thread thread = a_thread(1, tid), peer = a_thread(1, static_cast<std::int32_t>(1 + pick(6)));
      const auto cpu = static_cast<std::uint32_t>(pick(3));
      switch (pick(7)) {
        case 0:
          time.add(when, wakes(thread, peer, cpu));
          break;
        case 1:
          time.add(when, leaves(thread, static_cast<LeftState>(pick(8)), cpu, pick(2) == 0 ? peer : nobody()));
          break;
        case 2:
          time.add(when, enters(thread, cpu, pick(2) == 0 ? peer : nobody()));
          break;
        case 3:
          if (pick(20) == 0) time.lose(now - pick(50), now);
          break;
        case 4:
          if (pick(50) == 0) time.forget(1, now);
          break;
        default: {
          const auto mark = time.at(tid, when);
          if (const auto last = marks.find(tid); last != marks.end()) {
            const std::uint64_t from = last->second.time_ns;
            EXPECT_EQ(ThreadTime::between(last->second, mark).total(), when > from ? when - from : 0);
          }
          if (mark.exact) {
            EXPECT_EQ(mark.since_0.total(), when);
          }
          marks[tid] = mark;
          break;
        }
      }
    }
    for (std::int32_t tid = 1; tid <= 6; ++tid) {
      const auto last = time.current(tid, now);
      const std::uint64_t lasting = last ? last->end_ns - last->begin_ns : 0;
      EXPECT_LE(stretched[tid] + lasting, now - 900) << "stretches overlap";
    }
  }
}

}  // namespace
}  // namespace rtev
