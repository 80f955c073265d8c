// SPDX-License-Identifier: MIT
// Buckets of durations, and slices that become longer.
#include "analysis/diff/sliced_distribution.hpp"

#include <gmock/gmock.h>

#include "analysis/diff/slice_clock.hpp"

namespace rtev::test {
namespace {

TEST(SlicedDistribution, EachValueLiesInItsBucket) {
  for (const std::uint64_t ns :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{65}, std::uint64_t{127},
        std::uint64_t{128}, std::uint64_t{999'999}, std::uint64_t{1} << 40, UINT64_MAX}) {
    const std::uint16_t bucket = bucket_of(ns);
    ASSERT_LT(bucket, bucket_count);
    EXPECT_LE(begin_of_bucket(bucket), static_cast<double>(ns)) << ns;
    EXPECT_GE(begin_of_bucket(bucket + std::size_t{1}), static_cast<double>(ns)) << ns;
    EXPECT_LE(begin_of_bucket(bucket + std::size_t{1}) - begin_of_bucket(bucket),
              std::max(1.0, static_cast<double>(ns) / 31))
        << ns;
  }
}

TEST(SlicedDistribution, SlicesAreMergedByPairs) {
  DistributionBudget budget{.buckets = 10, .bytes = 1 << 20};
  SlicedDistribution distribution;
  for (const auto& [slice, ns] : {std::pair{0u, 10u}, {1u, 10u}, {1u, 20u}, {4u, 30u}})
    EXPECT_TRUE(distribution.record(slice, ns, budget));
  EXPECT_EQ(budget.buckets, 6u);
  distribution.halve(budget);
  ASSERT_EQ(distribution.slices().size(), 3u);
  ASSERT_EQ(distribution.slices()[0].size(), 2u);
  EXPECT_EQ(distribution.slices()[0][0].count, 2u);
  EXPECT_EQ(distribution.slices()[2][0].bucket, bucket_of(30));
  EXPECT_EQ(budget.buckets, 7u);
  EXPECT_EQ(distribution.all().count(), 4u);
}

TEST(SlicedDistribution, TakesNoMoreThanItsBudget) {
  DistributionBudget budget{.buckets = 2, .bytes = 1 << 20};
  SlicedDistribution distribution;
  std::size_t recorded = 0;
  for (std::uint64_t ns = 1; ns < 1000; ++ns) recorded += distribution.record(0, ns, budget) ? 1 : 0;
  EXPECT_EQ(recorded, 2u);
}

TEST(SliceClock, SpreadsTimeOverSlices) {
  SliceClock clock;
  clock.begin(1000);
  const std::uint64_t length = clock.length_ns();
  std::vector<std::pair<std::size_t, std::uint64_t>> parts;
  clock.each(500, 1000 + length + 7, [&](std::size_t slice, std::uint64_t ns) { parts.emplace_back(slice, ns); });
  EXPECT_THAT(parts, testing::ElementsAre(std::pair<std::size_t, std::uint64_t>{0, length},
                                          std::pair<std::size_t, std::uint64_t>{1, 7}));
  EXPECT_FALSE(clock.reaches(UINT64_MAX));
  while (!clock.reaches(UINT64_MAX)) clock.widen();
  EXPECT_LT(clock.at(UINT64_MAX), SliceClock::max_slices);
}

}  // namespace
}  // namespace rtev::test
