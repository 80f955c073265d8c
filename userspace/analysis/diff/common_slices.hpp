// SPDX-License-Identifier: MIT
// A recorded program in slices as long as those of the program that it is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/diff/recorded_program.hpp"

namespace rtev {

/// A lower bound for the slices of the shorter program, if it is long enough. Twice as many are the upper bound.
inline constexpr std::size_t wanted_slices = 20;
/// With fewer slices nothing is compared.
inline constexpr std::size_t least_slices = 10;

/// How long the slices are in which two programs are compared.
std::uint64_t common_slice_ns(const RecordedRun& run_a, const RecordedProgram& a, const RecordedRun& run_b,
                              const RecordedProgram& b);

std::uint64_t running_ns(const RecordedProgram& program);

/// Refers to the program.
class CommonSlices {
 public:
  /// `slice_ns`: a multiple of the run's by a power of two.
  CommonSlices(const RecordedRun& run, const RecordedProgram& program, std::uint64_t slice_ns);

  const RecordedProgram& program() const { return program_; }
  const std::vector<SlicedSums::Row>& rows() const { return rows_; }
  /// The slices that count: the program ran for half of it at least, and not many events are missing.
  const std::vector<std::size_t>& usable() const { return usable_; }
  /// Of the time that the program ran: the slices in which many events are missing.
  double lossy_share() const;
  /// Of a distribution, for each usable slice.
  std::vector<SliceCounts> counts(const SlicedDistribution& distribution) const;
  /// Of samples, for each slice.
  std::vector<double> counts(const SlicedSamples& samples) const;

 private:
  const RecordedProgram& program_;
  std::size_t merged_;  ///< slices of the run in one of these
  std::vector<SlicedSums::Row> rows_;
  std::vector<std::size_t> usable_;
  std::size_t lossy_ = 0;
};

}  // namespace rtev
