// SPDX-License-Identifier: MIT
#include "analysis/latency/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace rtev {
namespace {

constexpr std::uint64_t hour = 3'600'000'000'000;

Histogram histogram_of(const std::vector<std::uint64_t>& values) {
  Histogram histogram;
  for (const std::uint64_t value : values) histogram.record(value);
  return histogram;
}

/// What HdrHistogram_c calls the value at a percentile, among the values themselves.
std::uint64_t ranked(const std::vector<std::uint64_t>& sorted, double percentile) {
  const auto rank = static_cast<std::size_t>(percentile / 100 * static_cast<double>(sorted.size()) + 0.5);
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

void expect_three_digits(const Histogram& histogram, std::vector<std::uint64_t> values) {
  std::ranges::sort(values);
  for (const double percentile : {0.001, 1.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.5, 99.9, 99.99, 99.999, 99.9999}) {
    const std::uint64_t exact = ranked(values, percentile), told = histogram.percentile(percentile);
    EXPECT_GE(told, exact) << percentile;
    EXPECT_LE(told - exact, exact / 1000) << percentile;
  }
  EXPECT_EQ(histogram.percentile(0), values.front());
  EXPECT_EQ(histogram.percentile(100), values.back());
}

TEST(Histogram, SaysNothingOfNothing) {
  const Histogram none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.total(), 0U);
  EXPECT_EQ(none.min(), 0U);
  EXPECT_EQ(none.max(), 0U);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.standard_deviation(), 0);
  EXPECT_EQ(none.percentile(50), 0U);
}

TEST(Histogram, HasAPercentileIfAValueLiesBeyondIt) {
  Histogram histogram = histogram_of({5});
  EXPECT_EQ(histogram.known_percentile(50), std::nullopt);
  EXPECT_EQ(histogram.known_percentile(100), 5U);
  for (int i = 0; i < 98; ++i) histogram.record(5);
  EXPECT_EQ(histogram.known_percentile(50), 5U);
  EXPECT_EQ(histogram.known_percentile(99), std::nullopt);
  histogram.record(5);
  EXPECT_EQ(histogram.known_percentile(99), 5U);
  EXPECT_EQ(histogram.known_percentile(99.9), std::nullopt);
  for (int i = 0; i < 900; ++i) histogram.record(5);
  EXPECT_EQ(histogram.known_percentile(99.9), 5U);
  EXPECT_EQ(Histogram().known_percentile(100), std::nullopt);
}

TEST(Histogram, IsExactForSmallValues) {
  std::vector<std::uint64_t> values(2048);
  std::iota(values.begin(), values.end(), 0);
  const Histogram histogram = histogram_of(values);
  for (double percentile = 1; percentile <= 100; ++percentile) {
    EXPECT_EQ(histogram.percentile(percentile), ranked(values, percentile)) << percentile;
  }
}

TEST(Histogram, PercentilesHaveThreeDigitsWhateverTheDistribution) {
  std::mt19937_64 random{20240501};
  std::uniform_int_distribution<std::uint64_t> flat{1, 240 * hour};
  std::lognormal_distribution<double> pauses{11, 2.5};
  std::uniform_real_distribution<double> magnitude{0, std::log(static_cast<double>(240 * hour))};
  std::vector<std::uint64_t> uniform, skewed, any_magnitude;
  for (int i = 0; i < 100'000; ++i) {
    uniform.push_back(flat(random));
    skewed.push_back(static_cast<std::uint64_t>(pauses(random)));
    any_magnitude.push_back(static_cast<std::uint64_t>(std::exp(magnitude(random))));
  }
  for (const auto& values : {uniform, skewed, any_magnitude}) expect_three_digits(histogram_of(values), values);
}

TEST(Histogram, KeepsThreeDigitsAtEveryPowerOfTwo) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    for (const std::uint64_t value : {power - 1, power, power + 1, power + power / 2}) {
      // A second, greater value, lest max() hide the bucket's width.
      const Histogram histogram = histogram_of({value, std::numeric_limits<std::uint64_t>::max()});
      EXPECT_GE(histogram.percentile(50), value);
      EXPECT_LE(histogram.percentile(50) - value, value / 1000) << value;
    }
  }
}

TEST(Histogram, CountsTheLongestAndTheShortest) {
  const Histogram histogram = histogram_of({0, 240 * hour, std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.max(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(histogram.total(), std::numeric_limits<std::uint64_t>::max()) << "does not wrap around";
  EXPECT_EQ(histogram.percentile(1), 0U);
  EXPECT_EQ(histogram.percentile(100), std::numeric_limits<std::uint64_t>::max());
}

TEST(Histogram, RanksAsHdrHistogramDoes) {
  // Nearest rank of ten: 25 % is the third, 50 % the fifth, 96 % the tenth, 94 % the ninth.
  const Histogram ten = histogram_of({10, 20, 30, 40, 50, 60, 70, 80, 90, 100});
  EXPECT_EQ(ten.percentile(25), 30U);
  EXPECT_EQ(ten.percentile(50), 50U);
  EXPECT_EQ(ten.percentile(94), 90U);
  EXPECT_EQ(ten.percentile(96), 100U);
  EXPECT_EQ(ten.percentile(0.1), 10U);
  // The greatest value of the bucket [1'000'000, 1'000'447]; but never more than was seen.
  EXPECT_EQ(histogram_of({1'000'000, 2'000'000}).percentile(50), 1'000'447U);
  EXPECT_EQ(histogram_of({1'000'000}).percentile(50), 1'000'000U);
}

TEST(Histogram, MomentsAreThoseOfTheValues) {
  const Histogram histogram = histogram_of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(histogram.mean(), 5);
  EXPECT_DOUBLE_EQ(histogram.standard_deviation(), 2);
  EXPECT_EQ(histogram.total(), 40U);
  // Far from zero, where the naive formula has no digits left.
  const Histogram far = histogram_of({240 * hour + 2, 240 * hour + 4, 240 * hour + 6});
  EXPECT_NEAR(far.standard_deviation(), std::sqrt(8.0 / 3), 1e-3);
}

TEST(Histogram, MergesAsIfRecordedTogether) {
  std::mt19937_64 random{7};
  std::lognormal_distribution<double> pauses{10, 2};
  std::vector<std::uint64_t> all;
  Histogram left, right;
  for (int i = 0; i < 5000; ++i) {
    const auto value = static_cast<std::uint64_t>(pauses(random));
    all.push_back(value);
    (i % 3 == 0 ? left : right).record(value);
  }
  const Histogram together = histogram_of(all);
  left.merge(Histogram{});
  Histogram merged;
  merged.merge(left);
  merged.merge(right);
  EXPECT_EQ(merged.count(), together.count());
  EXPECT_EQ(merged.total(), together.total());
  EXPECT_EQ(merged.min(), together.min());
  EXPECT_EQ(merged.max(), together.max());
  EXPECT_NEAR(merged.mean(), together.mean(), 1e-6 * together.mean());
  EXPECT_NEAR(merged.standard_deviation(), together.standard_deviation(), 1e-6 * together.standard_deviation());
  for (const double percentile : {1.0, 50.0, 99.0, 99.9}) {
    EXPECT_EQ(merged.percentile(percentile), together.percentile(percentile));
  }
}

}  // namespace
}  // namespace rtev
