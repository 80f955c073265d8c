// SPDX-License-Identifier: MIT
// Durations, all together and by the slice of time they ended in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/latency/histogram.hpp"

namespace rtev {

/// Buckets of durations are at most a 32nd of their values wide. For resampling; figures come from the Histogram.
inline constexpr std::size_t bucket_count = 1920;
std::uint16_t bucket_of(std::uint64_t ns);
/// Where a bucket begins; `bucket_count`: where the last one ends.
double begin_of_bucket(std::size_t bucket);

struct BucketCount {
  std::uint16_t bucket = 0;
  std::uint32_t count = 0;
};
/// Of one slice, by bucket.
using SliceCounts = std::vector<BucketCount>;

/// Of values counted by bucket, which lie evenly in their bucket; nothing if there are none.
std::optional<double> percentile_of(std::span<const std::uint64_t> counts, double percentile);

/// How many more buckets of slices, and bytes of histograms, all distributions of a recording may take.
struct DistributionBudget {
  std::size_t buckets = std::size_t{1} << 22, bytes = std::size_t{64} << 20;
};

/// One thread.
class SlicedDistribution {
 public:
  /// False if there was no room.
  bool record(std::size_t slice, std::uint64_t ns, DistributionBudget& budget);
  /// Slices become twice as long.
  void halve(DistributionBudget& budget);

  const Histogram& all() const { return all_; }
  /// Slices up to the last one that has values.
  const std::vector<SliceCounts>& slices() const { return slices_; }

 private:
  Histogram all_;
  std::vector<SliceCounts> slices_;
};

/// Adds the counts of `from` to those of `to`. Returns by how many buckets `to` grew.
std::size_t merge_counts(SliceCounts& to, const SliceCounts& from);

}  // namespace rtev
