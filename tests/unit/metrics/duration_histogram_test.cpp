// SPDX-License-Identifier: MIT
#include "metrics/duration_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace rtev {
namespace {

std::size_t classic_bucket(std::uint64_t ns) {
  DurationHistogram histogram;
  histogram.record(ns);
  return static_cast<std::size_t>(std::ranges::find(histogram.classic(), 1U) - histogram.classic().begin());
}

/// As OpenTelemetry counts them.
std::int32_t exponential_index(std::uint64_t ns) {
  DurationHistogram histogram;
  histogram.record(ns);
  return DurationHistogram::first_index +
         static_cast<std::int32_t>(std::ranges::find(histogram.exponential(), 1U) - histogram.exponential().begin());
}

/// The upper bound of an exponential bucket, in seconds.
long double bound_of(std::int32_t index) {
  return std::exp2(static_cast<long double>(index + 1) / (1 << DurationHistogram::scale));
}

TEST(DurationHistogram, ADurationOnABoundIsInTheBucketBelow) {
  for (std::size_t i = 0; i < DurationHistogram::bounds_ns.size(); ++i) {
    EXPECT_EQ(classic_bucket(DurationHistogram::bounds_ns[i]), i);
    EXPECT_EQ(classic_bucket(DurationHistogram::bounds_ns[i] + 1), i + 1);
  }
  EXPECT_EQ(classic_bucket(0), 0U);
  EXPECT_EQ(classic_bucket(UINT64_MAX), DurationHistogram::bounds_ns.size());
}

TEST(DurationHistogram, ExponentialBucketsAreThoseOfTheDefinition) {
  constexpr std::int32_t last =
      DurationHistogram::first_index + static_cast<std::int32_t>(DurationHistogram::bucket_count) - 1;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponents(std::log2(110.0), std::log2(120e9));
  for (int i = 0; i < 20'000; ++i) {
    const auto ns = static_cast<std::uint64_t>(std::exp2(exponents(random)));
    const std::int32_t index = exponential_index(ns);
    const long double seconds = static_cast<long double>(ns) / 1e9L;
    EXPECT_LE(seconds, bound_of(index)) << ns;
    EXPECT_GT(seconds, bound_of(index - 1)) << ns;
  }
  // Powers of two are bounds.
  EXPECT_EQ(exponential_index(1'000'000'000), -1);
  EXPECT_EQ(exponential_index(1'000'000'001), 0);
  EXPECT_EQ(exponential_index(2'000'000'000), 7);
  EXPECT_EQ(exponential_index(500'000'000), -9);
  EXPECT_EQ(exponential_index(0), DurationHistogram::first_index);
  EXPECT_EQ(exponential_index(1), DurationHistogram::first_index);
  EXPECT_EQ(exponential_index(UINT64_MAX), last);
}

TEST(DurationHistogram, CountsEachDurationOnceInBoth) {
  DurationHistogram histogram;
  for (std::uint64_t ns = 1; ns < 1'000'000'000'000; ns *= 3) histogram.record(ns);
  const auto count_of = [](const auto& buckets) {
    return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
  };
  EXPECT_EQ(histogram.count(), 26U);
  EXPECT_EQ(count_of(histogram.classic()), 26U);
  EXPECT_EQ(count_of(histogram.exponential()), 26U);
}

TEST(DurationHistogram, TheSumStaysAtItsGreatestValue) {
  DurationHistogram histogram;
  histogram.record(UINT64_MAX - 5);
  histogram.record(10);
  EXPECT_EQ(histogram.sum_ns(), UINT64_MAX);
  EXPECT_EQ(histogram.count(), 2U);
}

}  // namespace
}  // namespace rtev
