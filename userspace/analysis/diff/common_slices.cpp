// SPDX-License-Identifier: MIT
#include "analysis/diff/common_slices.hpp"

#include <algorithm>

namespace rtev {
namespace {

double sum_of_slices(const SlicedSums::Row& row, SliceSum sum) {
  return row[static_cast<std::size_t>(sum)];
}

}  // namespace

std::uint64_t running_ns(const RecordedProgram& program) {
  double ns = 0;
  for (const SlicedSums::Row& row : program.sums.rows()) ns += sum_of_slices(row, SliceSum::running_ns);
  constexpr double most = 1e18;  // times of a recording may be anything
  return static_cast<std::uint64_t>(std::clamp(ns, 0.0, most));
}

std::uint64_t common_slice_ns(const RecordedRun& run_a, const RecordedProgram& a, const RecordedRun& run_b,
                              const RecordedProgram& b) {
  const std::uint64_t shorter_ns = std::min(running_ns(a), running_ns(b));
  std::uint64_t slice_ns = std::max(run_a.slice_ns, run_b.slice_ns);
  while (slice_ns * 2 * wanted_slices <= shorter_ns) slice_ns *= 2;
  return slice_ns;
}

CommonSlices::CommonSlices(const RecordedRun& run, const RecordedProgram& program, std::uint64_t slice_ns)
    : program_(program), merged_(static_cast<std::size_t>(slice_ns / std::max<std::uint64_t>(run.slice_ns, 1))) {
  const auto& rows = program.sums.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows_.size() <= i / merged_) rows_.emplace_back();
    SlicedSums::Row& row = rows_[i / merged_];
    for (std::size_t sum = 0; sum < row.size(); ++sum) row[sum] += rows[i][sum];
  }
  constexpr double max_lossy = 0.02;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (sum_of_slices(rows_[i], SliceSum::running_ns) < static_cast<double>(slice_ns) / 2) continue;
    if (sum_of_slices(rows_[i], SliceSum::lossy_ns) > sum_of_slices(rows_[i], SliceSum::domain_ns) * max_lossy) {
      ++lossy_;
    } else {
      usable_.push_back(i);
    }
  }
}

double CommonSlices::lossy_share() const {
  const std::size_t all = lossy_ + usable_.size();
  return all == 0 ? 0 : static_cast<double>(lossy_) / static_cast<double>(all);
}

std::vector<SliceCounts> CommonSlices::counts(const SlicedDistribution& distribution) const {
  std::vector<SliceCounts> merged(usable_.size());
  const auto& slices = distribution.slices();
  for (std::size_t i = 0; i < usable_.size(); ++i) {
    const std::size_t first = usable_[i] * merged_;
    for (std::size_t slice = first; slice < std::min(first + merged_, slices.size()); ++slice)
      merge_counts(merged[i], slices[slice]);
  }
  return merged;
}

std::vector<double> CommonSlices::counts(const SlicedSamples& samples) const {
  std::vector<double> merged(rows_.size());
  for (std::size_t i = 0; i < samples.size() && i / merged_ < merged.size(); ++i) merged[i / merged_] += samples[i];
  return merged;
}

}  // namespace rtev
