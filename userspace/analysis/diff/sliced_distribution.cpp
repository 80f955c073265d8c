// SPDX-License-Identifier: MIT
#include "analysis/diff/sliced_distribution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace rtev {
namespace {

/// Values below 64 have a bucket each; then each power of two has 32.
constexpr unsigned digits = 5;
constexpr std::uint64_t in_power = std::uint64_t{1} << digits;

}  // namespace

std::uint16_t bucket_of(std::uint64_t ns) {
  const int shift = std::max(static_cast<int>(std::bit_width(ns)) - static_cast<int>(digits) - 1, 0);
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(shift) * in_power + (ns >> shift));
}

double begin_of_bucket(std::size_t bucket) {
  if (bucket < 2 * in_power) return static_cast<double>(bucket);
  const auto shift = static_cast<int>(bucket / in_power) - 1;
  return std::ldexp(static_cast<double>(bucket - static_cast<std::size_t>(shift) * in_power), shift);
}

std::optional<double> percentile_of(std::span<const std::uint64_t> counts, double percentile) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  if (total <= 0) return std::nullopt;
  double left = total * percentile / 100;
  std::size_t last = 0;
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    if (counts[bucket] == 0) continue;
    last = bucket;
    const auto count = static_cast<double>(counts[bucket]);
    if (left <= count) {
      const double begin = begin_of_bucket(bucket), width = begin_of_bucket(bucket + 1) - begin;
      return begin + width * left / count;
    }
    left -= count;
  }
  return begin_of_bucket(last + 1);
}

std::size_t merge_counts(SliceCounts& to, const SliceCounts& from) {
  SliceCounts merged;
  merged.reserve(to.size() + from.size());
  std::size_t i = 0;
  for (const BucketCount& added : from) {
    while (i < to.size() && to[i].bucket < added.bucket) merged.push_back(to[i++]);
    const std::uint32_t known = i < to.size() && to[i].bucket == added.bucket ? to[i++].count : 0;
    merged.push_back({added.bucket, known + std::min(added.count, UINT32_MAX - known)});
  }
  merged.insert(merged.end(), to.begin() + static_cast<std::ptrdiff_t>(i), to.end());
  const std::size_t before = to.size();
  to = std::move(merged);
  return to.size() - before;
}

bool SlicedDistribution::record(std::size_t slice, std::uint64_t ns, DistributionBudget& budget) {
  const BucketCount added{.bucket = bucket_of(ns), .count = 1};
  if (budget.buckets == 0 || budget.bytes == 0) return false;
  if (slices_.size() <= slice) slices_.resize(slice + 1);
  SliceCounts& counts = slices_[slice];
  const auto found = std::ranges::lower_bound(counts, added.bucket, {}, &BucketCount::bucket);
  if (found != counts.end() && found->bucket == added.bucket) {
    found->count += found->count == UINT32_MAX ? 0 : 1;
  } else {
    counts.insert(found, added);
    --budget.buckets;
  }
  const std::size_t before = all_.memory_bytes();
  all_.record(ns);
  budget.bytes -= std::min(budget.bytes, all_.memory_bytes() - before);
  return true;
}

void SlicedDistribution::halve(DistributionBudget& budget) {
  for (std::size_t i = 0; i < slices_.size(); i += 2) {
    SliceCounts merged = std::move(slices_[i]);
    if (i + 1 < slices_.size()) {
      const std::size_t sum = merged.size() + slices_[i + 1].size();
      merge_counts(merged, slices_[i + 1]);
      budget.buckets += sum - merged.size();
    }
    slices_[i / 2] = std::move(merged);
  }
  slices_.resize((slices_.size() + 1) / 2);
}

}  // namespace rtev
