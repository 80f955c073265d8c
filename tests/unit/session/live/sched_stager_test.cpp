// SPDX-License-Identifier: MIT
#include "session/live/sched_stager.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

Thread thread(std::int32_t tid, bool tracked = true) {
  Thread result{};
  result.tid = tid;
  result.tracked = tracked;
  return result;
}

SchedSwitch change(const Thread& prev, LeftState state, const Thread& next) {
  return {.cpu = 0, .state = state, .prev = prev, .next = next};
}

const Thread stranger = thread(99, false);

TEST(InterruptedThreads, HoldWhileTheyAreOffTheCpuInvoluntarily) {
  for (const LeftState state :
       {LeftState::preempted, LeftState::uninterruptible, LeftState::stopped, LeftState::traced}) {
    InterruptedThreads threads;
    threads.add(10, change(thread(1), state, stranger));
    EXPECT_EQ(threads.since(0), 10u);
    threads.add(20, change(stranger, LeftState::preempted, thread(1)));
    EXPECT_FALSE(threads.since(0));
  }
}

TEST(InterruptedThreads, DoNotHoldIfTheyLeaveTheCpuVoluntarily) {
  InterruptedThreads threads;
  threads.add(10, change(thread(1), LeftState::sleeping, stranger));
  threads.add(11, change(thread(2), LeftState::dead, stranger));
  threads.add(12, change(stranger, LeftState::preempted, stranger));
  EXPECT_FALSE(threads.since(0));
}

TEST(InterruptedThreads, TheOneThatWaitsLongestCounts) {
  InterruptedThreads threads;
  threads.add(30, change(thread(3), LeftState::preempted, stranger));
  threads.add(10, change(thread(1), LeftState::preempted, thread(2)));
  threads.add(20, change(thread(2), LeftState::preempted, stranger));
  EXPECT_EQ(threads.since(0), 10u);
  threads.add(40, change(stranger, LeftState::sleeping, thread(1)));
  EXPECT_EQ(threads.since(0), 20u);
}

TEST(InterruptedThreads, AcceptCpusInAnyOrder) {
  InterruptedThreads threads;
  threads.add(20, change(stranger, LeftState::sleeping, thread(1)));  // goes on, on another cpu
  threads.add(10, change(thread(1), LeftState::preempted, stranger));
  EXPECT_FALSE(threads.since(0));
}

TEST(InterruptedThreads, AreForgottenAfterAWhile) {
  InterruptedThreads threads;
  threads.add(10, change(thread(1), LeftState::stopped, stranger));
  EXPECT_EQ(threads.since(10), 10u);
  EXPECT_FALSE(threads.since(11));
  EXPECT_FALSE(threads.since(0)) << "it is forgotten";
}

}  // namespace
}  // namespace rtev
