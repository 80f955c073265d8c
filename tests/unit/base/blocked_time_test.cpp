// SPDX-License-Identifier: MIT
#include "base/blocked_time.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t milli = 1'000'000;

void run_for(std::uint64_t duration_ns) {
  for (const std::uint64_t begin = monotonic_ns(); monotonic_ns() - begin < duration_ns;) {
  }
}

TEST(BlockedTime, CountsWaits) {
  BlockedTime blocked;
  // A thread that is preempted on its way to sleep may find the time over when it goes on.
  std::uint64_t waited = 0;
  for (int turn = 0; turn < 100 && waited < 10 * milli; ++turn) {
    ::poll(nullptr, 0, 20);
    run_for(5 * milli);
    waited = blocked.take();
  }
  EXPECT_GE(waited, 10 * milli);
  const std::uint64_t begin = monotonic_ns();
  run_for(milli);
  EXPECT_LE(blocked.take(), monotonic_ns() - begin + milli) << "since the last call";
}

TEST(BlockedTime, DoesNotCountTheWaitForACpu) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> ends = false;
  std::thread other([&ends] {
    while (!ends) {
    }
  });
  BlockedTime blocked;
  ::poll(nullptr, 0, 1);
  run_for(200 * milli);
  const std::uint64_t waited = blocked.take();
  ends = true;
  other.join();
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_LT(waited, 50 * milli) << "the other thread ran for half of the time";
}

}  // namespace
}  // namespace rtev
