// SPDX-License-Identifier: MIT
#include "load/event_clock.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.hpp"

namespace rtev::load {
namespace {

TEST(LoadClock, CachedTimeIncreasesAndIsReadEvery64thTime) {
  std::jthread([] {
    std::uint64_t before = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t floor = monotonic_ns();
      const std::uint64_t time = cached_time();
      EXPECT_GT(time, before);
      EXPECT_EQ(last_time(), time);
      if (i % 64 == 0) {
        EXPECT_GE(time, floor);
      } else {
        EXPECT_EQ(time, before + 1);
      }
      EXPECT_LE(time, monotonic_ns());
      before = time;
    }
  }).join();
}

TEST(LoadClock, RefreshMakesTheNextTimeRead) {
  cached_time();
  refresh_time();
  const std::uint64_t floor = monotonic_ns();
  EXPECT_GE(cached_time(), floor);
}

TEST(LoadClock, ThreadsHaveTheirOwnTime) {
  const std::uint64_t mine = cached_time();
  std::jthread([] { exact_time(); }).join();
  EXPECT_EQ(last_time(), mine);
}

}  // namespace
}  // namespace rtev::load
