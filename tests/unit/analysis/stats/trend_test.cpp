// SPDX-License-Identifier: MIT
#include "analysis/stats/trend.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace rtev::test {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

/// Ten values a second.
Trend trend_of(std::uint64_t seconds, const std::function<std::uint64_t(std::uint64_t)>& value_of) {
  Trend trend;
  for (std::uint64_t i = 0; i <= seconds * 10; ++i) trend.add(i * second_ns / 10, value_of(i));
  return trend;
}

TEST(Trend, WithoutValues) {
  const Trend trend;
  EXPECT_EQ(trend.count(), 0u);
  EXPECT_EQ(trend.first() + trend.last() + trend.span_ns(), 0u);
  EXPECT_FALSE(trend.rise_per_second());
  EXPECT_FALSE(trend.rises_all_the_time());
}

TEST(Trend, KnowsWhereItBeganAndWhereItIs) {
  const Trend trend = trend_of(10'000, [](std::uint64_t i) { return 500 + i; });
  EXPECT_EQ(trend.first(), 500u);
  EXPECT_EQ(trend.last(), 100'500u);
  EXPECT_EQ(trend.span_ns(), 10'000 * second_ns);
  EXPECT_EQ(trend.rise_per_second(), 10u);
  EXPECT_TRUE(trend.rises_all_the_time());
}

TEST(Trend, AHeapThatIsCollectedDoesNotRiseAllTheTime) {
  EXPECT_FALSE(trend_of(100, [](std::uint64_t i) { return 1000 + 100 * (i % 10); }).rises_all_the_time());
  EXPECT_FALSE(trend_of(100, [](std::uint64_t i) { return i < 500 ? i : 1000 - i; }).rises_all_the_time());
  EXPECT_FALSE(trend_of(100, [](std::uint64_t) { return 7; }).rises_all_the_time());
}

TEST(Trend, AStartIsNoRise) {
  EXPECT_FALSE(trend_of(100, [](std::uint64_t i) { return i < 100 ? i : 100; }).rises_all_the_time());
}

TEST(Trend, SmallFallsAreNoEnd) {
  EXPECT_TRUE(trend_of(100, [](std::uint64_t i) { return 10 * i + 50 * (i % 2); }).rises_all_the_time());
}

TEST(Trend, ShortTimesTellNoRate) {
  Trend trend;
  trend.add(0, 1);
  trend.add(1'000'000, 100);
  EXPECT_FALSE(trend.rise_per_second());
  EXPECT_FALSE(trend.rises_all_the_time());
}

TEST(Trend, EarlierTimesAreIgnored) {
  Trend trend;
  trend.add(1000, 1);
  trend.add(999, 2);
  EXPECT_EQ(trend.last(), 1u);
}

}  // namespace
}  // namespace rtev::test
