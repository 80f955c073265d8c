// SPDX-License-Identifier: MIT
#include "stream/thread_tracker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
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

class IntervalLog final : public ThreadObserver {
 public:
  void on_thread_interval(const ThreadInterval& interval) override { intervals.push_back(interval); }
  std::vector<ThreadInterval> intervals;
};

const Thread worker = a_thread(100, 101, 1);
const Thread sibling = a_thread(100, 102, 2);

TEST(ThreadTracker, SplitsTimeByWhatTheThreadDid) {
  ThreadTracker time;
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
  EXPECT_EQ(ThreadTracker::between(start, time.at(101, 400)), (TimeSplit{.on_cpu = 30 + 20 + 10 + 9,
                                                                         .runnable = 50 + 10 + 1,
                                                                         .sleeping = 90,
                                                                         .uninterruptible = 60,
                                                                         .stopped = 20,
                                                                         .unknown = 50}));
  EXPECT_EQ(time.inconsistent_switches(), 0U);
}

TEST(ThreadTracker, SnapshotsWithinAnIntervalShareItOut) {
  ThreadTracker time;
  time.add(100, enters(worker));
  const auto a = time.at(101, 110), b = time.at(101, 140);
  time.add(150, leaves(worker, LeftState::preempted, 0, competitor()));
  const auto c = time.at(101, 155);
  EXPECT_EQ(ThreadTracker::between(a, b), (TimeSplit{.on_cpu = 30}));
  EXPECT_EQ(ThreadTracker::between(b, c), (TimeSplit{.on_cpu = 10, .runnable = 5}));
  EXPECT_EQ(ThreadTracker::between(c, a), TimeSplit{}) << "the wrong way round";
}

TEST(ThreadTracker, KnowsNothingOfThreadsThatWereNotSeen) {
  ThreadTracker time;
  const auto start = time.at(5, 10);
  EXPECT_EQ(ThreadTracker::between(start, time.at(5, 30)), (TimeSplit{.unknown = 20}));
  EXPECT_EQ(time.current(5, 10), std::nullopt);
  time.add(10, enters(competitor()));
  EXPECT_EQ(time.size(), 0U) << "not of a traced process";
}

TEST(ThreadTracker, SaysWhoTookTheCpuAndWhoWoke) {
  IntervalLog log;
  const std::vector<ThreadInterval>& intervals = log.intervals;
  ThreadTracker time{&log};
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
  EXPECT_EQ(waiting->preempted_by->tid, 999);

  ASSERT_EQ(intervals.size(), 5U);
  EXPECT_EQ(intervals[0].state, ThreadState::on_cpu);
  EXPECT_EQ(intervals[0].cpu, 3);
  EXPECT_EQ(intervals[0].domain, 1);
  EXPECT_EQ(intervals[1].state, ThreadState::runnable);
  EXPECT_EQ(intervals[1].cpu, 3);
  EXPECT_EQ(intervals[1].preempted_by->comm(), "hog");
  EXPECT_EQ(intervals[2].cpu, 4) << "migrated";
  EXPECT_EQ(intervals[3].state, ThreadState::sleeping);
  EXPECT_EQ(intervals[3].preempted_by, std::nullopt);
  EXPECT_EQ(intervals[4].state, ThreadState::runnable);
  EXPECT_EQ(intervals[4].woken_by->tid, 102);
}

TEST(ThreadTracker, AMissingEntryMakesTheTimeSinceUnknown) {
  ThreadTracker time;
  time.add(100, enters(worker));
  time.add(110, leaves(worker, LeftState::sleeping));
  const auto start = time.at(101, 110);
  time.add(200, leaves(worker, LeftState::sleeping));
  EXPECT_EQ(ThreadTracker::between(start, time.at(101, 205)), (TimeSplit{.sleeping = 5, .unknown = 90}));
  EXPECT_EQ(time.inconsistent_switches(), 1U);
}

TEST(ThreadTracker, AMissingExitIsSeenFromTheCpu) {
  ThreadTracker time;
  time.add(100, enters(worker, 2));
  const auto start = time.at(101, 100);
  time.add(150, enters(sibling, 2, competitor()));  // but the worker was there
  EXPECT_EQ(time.current(101, 160)->state, ThreadState::unknown);
  EXPECT_EQ(ThreadTracker::between(start, time.at(101, 160)), (TimeSplit{.unknown = 60}));
  time.add(170, enters(worker, 1));
  const auto again = time.at(101, 170);
  EXPECT_EQ(ThreadTracker::between(again, time.at(101, 180)), (TimeSplit{.on_cpu = 10}));
  EXPECT_EQ(time.inconsistent_switches(), 1U);
}

TEST(ThreadTracker, WhatWasToldStands) {
  ThreadTracker time;
  time.add(100, enters(worker));
  const auto a = time.at(101, 100), b = time.at(101, 150);
  EXPECT_EQ(ThreadTracker::between(a, b), (TimeSplit{.on_cpu = 50}));
  time.add(200, enters(worker, 1));  // it must have left before
  const auto c = time.at(101, 200);
  EXPECT_EQ(ThreadTracker::between(b, c), (TimeSplit{.unknown = 50}));
  EXPECT_EQ(ThreadTracker::between(a, c), (TimeSplit{.on_cpu = 50, .unknown = 50}));
}

TEST(ThreadTracker, WithoutItsWakeupAThreadSleepsUntilItRuns) {
  ThreadTracker time;
  time.add(90, wakes(sibling));
  time.add(100, enters(worker));
  time.add(110, leaves(worker, LeftState::sleeping));
  time.add(150, enters(worker));
  EXPECT_EQ(time.at(101, 150).since_0, (TimeSplit{.on_cpu = 10, .sleeping = 40, .unknown = 100}));
  EXPECT_EQ(time.inconsistent_switches(), 0U);
}

TEST(ThreadTracker, WokenOnItsWayOffTheCpuItNeverSleeps) {
  IntervalLog log;
  const std::vector<ThreadInterval>& intervals = log.intervals;
  ThreadTracker time{&log};
  time.add(100, enters(worker));
  time.add(109, wakes(worker, sibling));
  time.add(110, leaves(worker, LeftState::sleeping));
  time.add(150, enters(worker));
  EXPECT_EQ(time.at(101, 150).since_0, (TimeSplit{.on_cpu = 10, .runnable = 40, .unknown = 100}));
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[1].woken_by->tid, 102);
  // The next sleep is one, although somebody woke it early once.
  time.add(160, leaves(worker, LeftState::sleeping));
  time.add(190, wakes(worker));
  time.add(191, enters(worker));
  EXPECT_EQ(time.at(101, 191).since_0.sleeping, 30U);
}

TEST(ThreadTracker, LossesAreUnknownFromTheirBeginOn) {
  ThreadTracker time;
  test::World world;
  const Loss loss{.words = 0, .from_ns = 140, .to_ns = 160};
  time.add(100, enters(worker, 0));
  time.add(110, enters(sibling, 1));
  test::Events events{0};
  events.add_record(160, EventKind::lost, loss, static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream);
  time.add(events.batch().events().front(), events.batch(), world.registry);
  time.add(150, enters(competitor(), 1, sibling));
  time.add(170, leaves(worker, LeftState::sleeping, 0));
  EXPECT_EQ(time.at(101, 180).since_0, (TimeSplit{.on_cpu = 40, .sleeping = 10, .unknown = 100 + 30}));
  EXPECT_EQ(time.inconsistent_switches(), 0U) << "what was lost contradicts nothing";
}

TEST(ThreadTracker, WhatIsSeenWhereEventsAreMissingProvesNothing) {
  ThreadTracker time;
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
  EXPECT_EQ(time.inconsistent_switches(), 0U);
}

TEST(ThreadTracker, GapsOfSeveralCpusOverlap) {
  ThreadTracker time;
  time.add(100, enters(worker, 0));
  time.lose(120, 200);
  time.lose(130, 150);
  time.add(160, leaves(worker, LeftState::sleeping, 0));
  EXPECT_EQ(time.current(101, 210)->state, ThreadState::unknown) << "the first gap lasts until 200";
  time.add(210, enters(worker, 0));
  time.lose(220, 230);
  EXPECT_EQ(time.at(101, 240).since_0, (TimeSplit{.on_cpu = 20 + 10, .unknown = 100 + 90 + 20}));
}

TEST(ThreadTracker, WhoDiesWhereEventsAreMissingIsForgotten) {
  ThreadTracker time;
  time.add(100, enters(worker, 0));
  time.lose(120, 200);
  time.add(160, leaves(worker, LeftState::dead, 0));
  EXPECT_EQ(time.size(), 0U);
}

TEST(ThreadTracker, LateEventsChangeOnlyWhatWasNotTold) {
  ThreadTracker time;
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
  EXPECT_EQ(ThreadTracker::between(past, time.at(101, 180)), (TimeSplit{.unknown = 30}));
}

TEST(ThreadTracker, ForgetsTheDeadAndTellsReusedTidsApart) {
  ThreadTracker time;
  time.add(100, enters(worker));
  const auto alive = time.at(101, 110);
  time.add(120, leaves(worker, LeftState::dead));
  EXPECT_EQ(time.size(), 0U);
  const Thread heir = a_thread(100, 101, 3);
  time.add(130, enters(heir));
  EXPECT_EQ(ThreadTracker::between(alive, time.at(101, 140)), (TimeSplit{.unknown = 30})) << "not the same thread";
  const Thread stranger = a_thread(200, 101);
  time.add(150, enters(stranger, 1));
  EXPECT_EQ(time.size(), 1U);
  EXPECT_EQ(time.current(101, 150)->pid, 200);
  time.add(160, leaves(a_thread(300, 301), LeftState::dead, 7));
  EXPECT_EQ(time.size(), 1U) << "the dead are not worth following";
}

TEST(ThreadTracker, ForgetsProcessesThatEnd) {
  ThreadTracker time;
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

TEST(ThreadTracker, FollowsNoMoreThreadsThanItMay) {
  ThreadTracker time{nullptr, {.threads = 10}};
  for (std::int32_t tid = 1; tid <= 100; ++tid) time.add(100, wakes(a_thread(1, tid)));
  EXPECT_EQ(time.size(), 10U);
  const auto beyond = time.at(50, 100);
  EXPECT_EQ(ThreadTracker::between(beyond, time.at(50, 110)), (TimeSplit{.unknown = 10}));
}

TEST(ThreadTracker, KnowsWhichThreadIsOnEachCpu) {
  ThreadTracker threads;
  EXPECT_EQ(threads.running_on(0), nullptr);
  threads.add(100, enters(worker, 0, competitor()));
  threads.add(110, enters(competitor(), 1));
  EXPECT_EQ(threads.running_on(0)->thread.tid, 101);
  EXPECT_EQ(threads.running_on(0)->begin_ns, 100U);
  EXPECT_EQ(threads.cpu_of(101), 0U);
  EXPECT_EQ(threads.cpu_of(999), 1U);
  threads.add(120, leaves(worker, LeftState::sleeping, 0));
  EXPECT_EQ(threads.running_on(0)->thread.tid, 0);
  EXPECT_EQ(threads.cpu_of(101), std::nullopt);
  threads.add(115, enters(sibling, 0));
  EXPECT_EQ(threads.running_on(0)->thread.tid, 0) << "the switch was late";
  EXPECT_EQ(threads.current(102, 130)->state, ThreadState::unknown);
}

TEST(ThreadTracker, ReportsWhoLeftACpuUnseen) {
  struct Log final : ThreadObserver {
    void on_cpu_interval(const CpuInterval& interval) override { intervals.push_back(interval); }
    void on_left_unseen(std::uint32_t cpu, const RunningThread& running, std::uint64_t time_ns) override {
      left.emplace_back(cpu, running.thread.tid, time_ns);
    }
    std::vector<CpuInterval> intervals;
    std::vector<std::tuple<std::uint32_t, std::int32_t, std::uint64_t>> left;
  } log;
  ThreadTracker threads{&log};
  threads.add(100, enters(worker, 0));
  threads.add(110, enters(competitor(), 1));
  threads.add(120, enters(worker, 1, competitor()));  // not on cpu 0 any more
  threads.add(130, enters(competitor(), 0));
  threads.add(140, enters(sibling, 0));  // of untraced threads nothing is known after their begin
  threads.finish(150);
  const std::vector<std::tuple<std::uint32_t, std::int32_t, std::uint64_t>> expected{
      {0, 101, 120}, {0, 102, 150}, {0, 999, 130}, {1, 101, 150}};
  std::ranges::sort(log.left);
  EXPECT_EQ(log.left, expected);
  ASSERT_EQ(log.intervals.size(), 3U);
  EXPECT_EQ(log.intervals[0].first.tid, 999);
  EXPECT_FALSE(log.intervals[0].left_unseen);
  EXPECT_EQ(log.intervals[1].cpu, 0U);
  EXPECT_TRUE(log.intervals[1].left_unseen);
  EXPECT_EQ(log.intervals[1].end_ns, 130U);
}

TEST(ThreadTracker, ALateSwitchDoesNotMoveAThreadBack) {
  ThreadTracker threads;
  threads.add(100, leaves(worker, LeftState::sleeping, 1));
  threads.add(200, enters(worker, 0));
  threads.add(150, enters(worker, 1));  // late: it has left again for cpu 0
  EXPECT_EQ(threads.cpu_of(101), 0U);
  EXPECT_FALSE(threads.running_on(0)->left_unseen);
  EXPECT_TRUE(threads.running_on(1)->left_unseen);
  EXPECT_EQ(threads.current(101, 210)->state, ThreadState::on_cpu);
}

TEST(ThreadTracker, AContradictedIntervalStillHasItsFirstState) {
  IntervalLog log;
  ThreadTracker threads{&log};
  threads.add(100, enters(worker, 0));
  threads.add(150, enters(worker, 1));
  ASSERT_EQ(log.intervals.size(), 1U);
  EXPECT_EQ(log.intervals[0].state, ThreadState::unknown);
  EXPECT_EQ(log.intervals[0].first_state, ThreadState::on_cpu);
}

TEST(ThreadTracker, AThreadThatIsNotTracedAnyMoreIsForgotten) {
  ThreadTracker threads;
  threads.add(100, enters(worker, 0));
  Thread untraced = worker;
  untraced.tracked = false;
  threads.add(110, leaves(untraced, LeftState::sleeping, 0));
  EXPECT_EQ(threads.size(), 0U);
}

/// Whatever happens, in whatever order: no time is lost and none is made up.
TEST(ThreadTracker, PartsAlwaysAddUp) {
  std::mt19937 random{42};
  const auto pick = [&](std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random);
  };
  for (int round = 0; round < 50; ++round) {
    IntervalLog log;
    ThreadTracker time{&log};
    std::map<std::int32_t, ThreadTracker::Snapshot> marks;
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
          if (pick(50) == 0) time.forget_process(1, now);
          break;
        default: {
          const auto mark = time.at(tid, when);
          if (const auto last = marks.find(tid); last != marks.end()) {
            const std::uint64_t from = last->second.time_ns;
            EXPECT_EQ(ThreadTracker::between(last->second, mark).total(), when > from ? when - from : 0);
          }
          if (mark.exact) {
            EXPECT_EQ(mark.since_0.total(), when);
          }
          marks[tid] = mark;
          break;
        }
      }
    }
    std::map<std::int32_t, std::uint64_t> length;  // by tid
    for (const ThreadInterval& interval : log.intervals) {
      ASSERT_LT(interval.begin_ns, interval.end_ns);
      length[interval.tid] += interval.end_ns - interval.begin_ns;
    }
    for (std::int32_t tid = 1; tid <= 6; ++tid) {
      const auto last = time.current(tid, now);
      const std::uint64_t lasting = last ? last->end_ns - last->begin_ns : 0;
      EXPECT_LE(length[tid] + lasting, now - 900) << "intervals overlap";
    }
  }
}

}  // namespace
}  // namespace rtev
