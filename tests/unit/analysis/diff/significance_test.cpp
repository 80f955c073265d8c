// SPDX-License-Identifier: MIT
// The tests of `diff` against known values, and how often they are wrong where nothing differs.
#include "analysis/diff/significance.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace rtev::test {
namespace {

using testing::AllOf, testing::DoubleNear, testing::ElementsAre, testing::Gt, testing::Lt;

/// From 0 to 1, the same everywhere.
class Numbers {
 public:
  double next() { return static_cast<double>(random_() >> 11) / static_cast<double>(std::uint64_t{1} << 53); }

 private:
  std::mt19937_64 random_{7};
};

std::vector<double> values(Numbers& numbers, std::size_t count) {
  std::vector<double> all(count);
  for (double& value : all) value = numbers.next();
  return all;
}

TEST(RankTest, KnownValues) {
  // No neighbours are alike.
  const std::vector<double> low{1, 10, 2, 9, 3, 8, 4, 7, 5, 6}, high{11, 20, 12, 19, 13, 18, 14, 17, 15, 16};
  const RankTest apart = rank_test(low, high);
  EXPECT_THAT(apart.p, DoubleNear(1.8267e-4, 1e-8)) << "z = 49.5 / sqrt(100 * 21 / 12)";
  EXPECT_TRUE(apart.b_is_greater);
  EXPECT_FALSE(rank_test(high, low).b_is_greater);
  EXPECT_DOUBLE_EQ(rank_test(high, low).p, apart.p);
  EXPECT_THAT(rank_test(low, low).p, Gt(0.9));
}

TEST(RankTest, TiesShareTheirRank) {
  const std::vector<double> a{0, 1, 0, 1, 0, 1}, b{1, 0, 1, 1, 1, 0, 1, 1};
  // U = 16.5 of 48; 10 and 4 equal values... of 14: 5 zeros, 9 ones.
  const double variance = 6.0 * 8 / 12 * (15 - (5.0 * 5 * 5 - 5 + 9.0 * 9 * 9 - 9) / (14 * 13));
  const double u = 3.0 * (2.0 / 2) + 3.0 * (2 + 6.0 / 2);
  EXPECT_THAT(rank_test(a, b).p, DoubleNear(std::erfc((std::abs(u - 24) - 0.5) / std::sqrt(variance * 2)), 1e-9));
}

TEST(RankTest, NothingToCompare) {
  const std::vector<double> some{1, 2, 3}, same(20, 5.0);
  EXPECT_EQ(rank_test(some, {}).p, 1);
  EXPECT_EQ(rank_test({}, some).p, 1);
  EXPECT_EQ(rank_test(same, same).p, 1);
}

/// How many of 1,000 pairs of series without a difference have a p below 0.05.
template <typename Make>
int false_alarms(const Make& make) {
  int count = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<double> a = make(), b = make();
    count += rank_test(a, b).p < 0.05 ? 1 : 0;
  }
  return count;
}

TEST(RankTest, IsRarelyWrongWhereNothingDiffers) {
  Numbers numbers;
  EXPECT_THAT(false_alarms([&] { return values(numbers, 25); }), Lt(60));
}

TEST(RankTest, ValuesThatDriftCountForLess) {
  Numbers numbers;
  // Each value has half of the one before.
  const auto drifting = [&] {
    std::vector<double> series = values(numbers, 40);
    for (std::size_t i = 1; i < series.size(); ++i) series[i] += series[i - 1] / 2;
    return series;
  };
  EXPECT_THAT(false_alarms(drifting), Lt(90)) << "some 200 without a correction";
}

TEST(Adjusted, AsBenjaminiAndHochberg) {
  EXPECT_THAT(
      adjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005}),
      ElementsAre(DoubleNear(0.02, 1e-12), DoubleNear(0.04, 1e-12), DoubleNear(0.04, 1e-12), DoubleNear(0.02, 1e-12)));
  EXPECT_THAT(adjusted(std::vector<double>{0.9}), ElementsAre(0.9));
  EXPECT_TRUE(adjusted({}).empty());
}

TEST(DifferenceTest, KnownValues) {
  EXPECT_THAT(difference_test(1, 3, 1 + 1.959964 * 5, 4), DoubleNear(0.05, 1e-6));
  EXPECT_EQ(difference_test(1, 0, 1, 0), 1);
  EXPECT_EQ(difference_test(1, 0, 2, 0), 0);
}

TEST(PercentileError, OfIndependentValuesIsThatOfTheory) {
  Numbers numbers;
  std::vector<SliceCounts> slices(30);
  for (SliceCounts& slice : slices) {
    for (int i = 0; i < 100; ++i)
      merge_counts(slice, {{bucket_of(1'000'000 + static_cast<std::uint64_t>(1e6 * numbers.next())), 1}});
  }
  // 1 / (2 * density * sqrt(n)), relative to the median.
  const double expected = 1e6 / (2 * std::sqrt(3000.0)) / 1.5e6;
  EXPECT_THAT(log_percentile_error(slices, 50), AllOf(Gt(expected * 0.6), Lt(expected * 1.6)));
  EXPECT_EQ(log_percentile_error(slices, 50), log_percentile_error(slices, 50)) << "the same seed";
}

TEST(PercentileError, IsLargeIfFewSlicesHaveTheLongValues) {
  std::vector<SliceCounts> even(30, {{bucket_of(1000), 98}, {bucket_of(100'000), 2}}),
      rare(30, {{bucket_of(1000), 100}});
  rare[7] = {{bucket_of(1000), 40}, {bucket_of(100'000), 60}};
  EXPECT_THAT(log_percentile_error(even, 99), Lt(0.05));
  EXPECT_THAT(log_percentile_error(rare, 99), Gt(1));
  EXPECT_EQ(log_percentile_error({}, 99), 0);
}

}  // namespace
}  // namespace rtev::test
