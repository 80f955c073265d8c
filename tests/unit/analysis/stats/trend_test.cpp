// SPDX-License-Identifier: MIT
#include "analysis/stats/trend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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
  const Trend trend = trend_of(10'000, [](std::uint64_t i) { return 500 + 10 * i; });
  EXPECT_EQ(trend.first(), 500u);
  EXPECT_EQ(trend.last(), 1'000'500u);
  EXPECT_EQ(trend.span_ns(), 10'000 * second_ns);
  EXPECT_EQ(trend.rise_per_second(), 100u);
  EXPECT_TRUE(trend.rises_all_the_time());
}

constexpr std::uint64_t mb = 125'000;  ///< in words

TEST(Trend, ALeakInALargeHeapRisesAllTheTime) {
  EXPECT_TRUE(trend_of(60, [](std::uint64_t i) { return 7000 * mb + 6 * mb * i / 10; }).rises_all_the_time());
  const auto collected = [](std::uint64_t i) { return 7000 * mb + 6 * mb * i / 10 + 50 * mb * (i % 30); };
  EXPECT_TRUE(trend_of(60, collected).rises_all_the_time());
  EXPECT_FALSE(trend_of(60, [](std::uint64_t i) { return 7000 * mb + mb * i / 10; }).rises_all_the_time()) << "1 %";
}

TEST(Trend, ALeakAfterAStartRisesAllTheTime) {
  const auto value = [](std::uint64_t i) { return i < 100 ? 70 * mb * i : 7000 * mb + 6 * mb * (i - 100) / 10; };
  EXPECT_TRUE(trend_of(60, value).rises_all_the_time());
}

TEST(Trend, AHeapThatIsCollectedDoesNotRiseAllTheTime) {
  for (const std::uint64_t period : {3, 10, 77, 250, 500})
    EXPECT_FALSE(trend_of(100, [&](std::uint64_t i) { return 100 * mb + mb * (i % period); }).rises_all_the_time());
  EXPECT_FALSE(trend_of(100, [](std::uint64_t i) { return mb * (i < 500 ? i : 1000 - i); }).rises_all_the_time());
  EXPECT_FALSE(trend_of(100, [](std::uint64_t) { return 7 * mb; }).rises_all_the_time());
}

TEST(Trend, AStartIsNoRise) {
  const auto value = [](std::uint64_t i) { return i < 100 ? mb * i : 100 * mb + i; };
  EXPECT_FALSE(trend_of(100, value).rises_all_the_time());
  const auto longer = [](std::uint64_t i) { return mb * std::min<std::uint64_t>(i, 500); };
  EXPECT_FALSE(trend_of(100, longer).rises_all_the_time());
}

TEST(Trend, SmallRisesAndShortRunsAreNoLeak) {
  EXPECT_FALSE(trend_of(100, [](std::uint64_t i) { return mb + i * 100; }).rises_all_the_time());
  const auto fills = [](std::uint64_t i) { return mb * i; };
  EXPECT_FALSE(trend_of(7, fills).rises_all_the_time()) << "it may be a table that is filled";
  EXPECT_TRUE(trend_of(7, fills).is_short());
  EXPECT_TRUE(trend_of(9, fills).rises_all_the_time());
  EXPECT_FALSE(trend_of(9, fills).is_short());
}

TEST(Trend, FallsBetweenAreNoEnd) {
  EXPECT_TRUE(trend_of(100, [](std::uint64_t i) { return mb * (i + 50 * (i % 2)); }).rises_all_the_time());
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
