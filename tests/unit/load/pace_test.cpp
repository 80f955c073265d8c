// SPDX-License-Identifier: MIT
#include "load/pace.hpp"

#include <gtest/gtest.h>

namespace rtev::load {
namespace {

constexpr std::uint64_t start = 5'000'000'123, second = 1'000'000'000, year = 365ULL * 24 * 3600 * second;

TEST(Pace, FirstEventIsDueAtTheStart) {
  const Pace pace(start, 1000);
  EXPECT_EQ(pace.due(0), 0u);
  EXPECT_EQ(pace.due(start - 1), 0u);
  EXPECT_EQ(pace.due(start), 1u);
  EXPECT_EQ(pace.due(start + 999'999), 1u);
  EXPECT_EQ(pace.due(start + 1'000'000), 2u);
}

TEST(Pace, EventsAreDueFromTheirTimeOn) {
  for (const std::uint64_t rate :
       {1ULL, 3ULL, 7ULL, 999ULL, 1000ULL, 333'333ULL, 7'654'321ULL, 999'999'999ULL, 1'000'000'000ULL}) {
    const Pace pace(start, rate);
    for (const std::uint64_t index : {1ULL, 2ULL, 3ULL, 1000ULL, 65'537ULL, 999'999'999ULL, 1'000'000'001ULL}) {
      const std::uint64_t time = pace.time_of(index);
      EXPECT_GE(pace.due(time), index + 1) << rate << ' ' << index;
      EXPECT_LE(pace.due(time - 1), index) << rate << ' ' << index;
    }
  }
}

TEST(Pace, ASecondHasRateEvents) {
  for (const std::uint64_t rate : {1ULL, 3ULL, 1000ULL, 12'345'678ULL, 1'000'000'000ULL}) {
    const Pace pace(start, rate);
    EXPECT_EQ(pace.due(start + second - 1), rate);
    EXPECT_EQ(pace.due(start + 10 * second - 1), 10 * rate);
  }
}

TEST(Pace, DoesNotOverflowInAHundredYears) {
  const Pace pace(start, Pace::max_rate);
  EXPECT_EQ(pace.due(start + 100 * year), 100 * year + 1);
  EXPECT_EQ(pace.time_of(100 * year), start + 100 * year);
  EXPECT_EQ(Pace(start, 1).time_of(100 * year / second), start + 100 * year);
}

TEST(Pace, RareEventsAreWokenForOneByOne) {
  const Pace pace(start, 2000);
  for (const std::uint64_t index : {0ULL, 1ULL, 17ULL, 4001ULL}) EXPECT_EQ(pace.wake(index), pace.time_of(index));
}

TEST(Pace, FrequentEventsComeInBursts) {
  const Pace pace(start, 1'000'000);
  std::uint64_t written = 0;
  int wakes = 0;
  for (std::uint64_t now = start; now < start + second; ++wakes) {
    written = pace.due(now);
    const std::uint64_t next = pace.wake(written);
    ASSERT_GT(next, now);
    ASSERT_GE(next, pace.time_of(written));
    ASSERT_LE(next - now, Pace::burst_ns);
    now = next;
  }
  EXPECT_EQ(wakes, static_cast<int>(second / Pace::burst_ns));
  EXPECT_GE(written, 999'000u);
}

}  // namespace
}  // namespace rtev::load
