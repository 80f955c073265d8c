// SPDX-License-Identifier: MIT
#include "analysis/pauses/thread_history.hpp"

#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

constexpr std::int32_t pid = 7, tid = 8;

/// On a cpu and runnable in turns, each for 10 ns, from time 0.
void take_turns(ThreadHistory& history, std::int32_t thread, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    history.add({.pid = pid,
                 .tid = thread,
                 .state = i % 2 == 0 ? ThreadState::on_cpu : ThreadState::runnable,
                 .begin_ns = i * 10,
                 .end_ns = i * 10 + 10});
}

TimeSplit between(const ThreadHistory& history, std::int32_t thread, std::uint64_t from, std::uint64_t to) {
  return history.between(thread, from, to).time;
}

class ThreadHistoryTest : public testing::Test {
 protected:
  ThreadTracker threads;
  CpuHistory cpus{threads};
  ThreadHistory history{threads, cpus};
};

TEST_F(ThreadHistoryTest, HundredsOfTurnsAreAllKnown) {
  take_turns(history, tid, 1000);
  EXPECT_EQ(between(history, tid, 0, 10'000), (TimeSplit{.on_cpu = 5000, .runnable = 5000}));
  EXPECT_EQ(between(history, tid, 5, 15), (TimeSplit{.on_cpu = 5, .runnable = 5}));
  EXPECT_EQ(between(history, tid, 9'990, 10'010), (TimeSplit{.runnable = 10, .unknown = 10}));
}

TEST_F(ThreadHistoryTest, WhatIsTooLongAgoIsUnknown) {
  constexpr std::uint64_t kept = ThreadHistory::intervals_per_thread;
  take_turns(history, tid, kept + 2);
  EXPECT_EQ(between(history, tid, 0, 20), (TimeSplit{.unknown = 20}));
  EXPECT_EQ(between(history, tid, 20, 40), (TimeSplit{.on_cpu = 10, .runnable = 10}));
}

TEST_F(ThreadHistoryTest, ManyThreadsHaveFewerIntervalsEach) {
  constexpr std::uint64_t each = ThreadHistory::intervals_per_thread;
  constexpr auto threads = static_cast<std::int32_t>(ThreadHistory::max_intervals / each);
  for (std::int32_t thread = 1; thread <= threads; ++thread) take_turns(history, thread, each);
  constexpr std::int32_t last = threads + 1;
  take_turns(history, last, each);
  EXPECT_EQ(between(history, last, 0, 10).unknown, 10u);
  EXPECT_EQ(between(history, last, (each - ThreadHistory::min_intervals_per_thread) * 10, each * 10).unknown, 0u);

  history.forget_process(pid);
  take_turns(history, tid, each);
  EXPECT_EQ(between(history, tid, 0, each * 10).unknown, 0u) << "there is room again";
}

TEST_F(ThreadHistoryTest, WhoHadTheCpuInALongWaitIsKept) {
  constexpr std::uint64_t kept_ns = ThreadHistory::min_kept_wait_ns, brief_ns = kept_ns - 1;
  const Thread hog = test::make_thread(1, 1, "hog", false);
  const auto have_cpu = [&](std::uint64_t begin_ns, std::uint64_t end_ns) {
    cpus.add({.cpu = 0, .begin_ns = begin_ns, .end_ns = end_ns, .first = hog, .last = hog, .gapless = true});
  };
  const auto wait = [&](std::uint64_t begin_ns, std::uint64_t ns) {
    have_cpu(begin_ns, begin_ns + ns);
    history.add({.pid = pid,
                 .tid = tid,
                 .state = ThreadState::runnable,
                 .begin_ns = begin_ns,
                 .end_ns = begin_ns + ns,
                 .cpu = 0});
  };
  const auto longest = [&](std::uint64_t from_ns, std::uint64_t to_ns) {
    const CpuWait wait = history.between(tid, from_ns, to_ns).longest_wait;
    return std::pair(wait.ns, wait.by ? wait.by->tid : 0);
  };
  wait(0, kept_ns);
  wait(kept_ns, brief_ns);
  EXPECT_EQ(longest(0, kept_ns), std::pair(kept_ns, 1));
  EXPECT_EQ(longest(kept_ns, 2 * kept_ns), std::pair(brief_ns, 1));
  for (std::uint64_t i = 0; i < CpuHistory::intervals_per_cpu; ++i) have_cpu(3 * kept_ns + i, 3 * kept_ns + i + 1);
  EXPECT_EQ(longest(0, kept_ns), std::pair(kept_ns, 1));
  EXPECT_EQ(longest(kept_ns, 2 * kept_ns), std::pair(brief_ns, 0)) << "that is no longer known";
  EXPECT_EQ(longest(10, kept_ns), std::pair(kept_ns - 10, 1)) << "the part of it";
}

}  // namespace
}  // namespace rtev
