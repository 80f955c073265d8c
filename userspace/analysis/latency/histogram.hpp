// SPDX-License-Identifier: MIT
// A histogram of durations with three significant digits in bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rtev {

/// Counts values, whatever their size, to three significant digits: each lies in a bucket whose width is less than a
/// thousandth of it; up to 2047 they are exact. The buckets and percentiles are those of HdrHistogram_c with three
/// significant figures. Count, total, mean, standard deviation, least and greatest are computed from the values
/// themselves. Memory goes with how different the values are: some 20 KiB as a rule, never more than 600 KiB.
class Histogram {
 public:
  void record(std::uint64_t value);
  /// As if all that the other one counted had been recorded here.
  void merge(const Histogram& other);
  void clear() { *this = {}; }

  std::uint64_t count() const { return count_; }
  /// What goes with the values of its memory, in bytes.
  std::size_t memory_bytes() const { return blocks_.capacity() * sizeof(Block) + places_.capacity() * sizeof(Place); }
  /// Sum of all values; stays at its greatest value should it not fit (584 years of ns).
  std::uint64_t total() const { return total_; }
  /// Exact. 0 if nothing was recorded, as are the figures below.
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  std::uint64_t max() const { return max_; }
  double mean() const { return mean_; }
  /// Of the values as the whole population: divided by their count.
  double standard_deviation() const;
  /// The value whose rank among all, in order, is nearest to `percentile` % (0 to 100) of their count, to three digits:
  /// the greatest one that shares its bucket, but never more than max(). 0 is min() and 100 is max(), exactly.
  std::uint64_t percentile(double percentile) const;
  /// The same, if a value lies beyond it: fewer than 100 values have no 99th percentile, only a longest one.
  std::optional<std::uint64_t> known_percentile(double percentile) const;

 private:
  static constexpr std::size_t block_buckets = 32;
  using Block = std::array<std::uint64_t, block_buckets>;
  /// Where the block of a number is. A search in a few lines of the CPU's cache takes half the time of one in a tree.
  struct Place {
    std::uint32_t number, position;
  };

  Block& block_at(std::uint32_t number);
  void count(std::uint32_t bucket) { ++block_at(bucket / block_buckets)[bucket % block_buckets]; }
  void count_pending();

  // The blocks of many histograms do not fit into the CPU's cache. It is missed less often if several values of one
  // histogram are counted at once.
  std::array<std::uint32_t, 32> pending_{};  ///< buckets of values that are not yet in blocks_
  std::uint32_t pending_count_ = 0;
  std::vector<Place> places_;  ///< in order of the numbers; blocks without values are not there
  std::vector<Block> blocks_;  ///< of buckets, in the order they were needed
  std::uint64_t count_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  double mean_ = 0;
  double squares_ = 0;  ///< sum of the squared distances from the mean
};

}  // namespace rtev
