// SPDX-License-Identifier: MIT
// How a figure of a run went on: from where to where, how fast, and whether it rose all the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rtev {

/// Remembers values of even times, in bounded memory: the longer it runs the further apart they are.
class Trend {
 public:
  struct Sample {
    std::uint64_t time_ns = 0;
    std::uint64_t value = 0;
    std::uint64_t least = 0;  ///< since the sample before
  };

  /// Values in order of time, in ns; earlier ones are ignored. Values that follow another one at once replace it: the
  /// domains of a process report their parts of a heap one after the other.
  void add(std::uint64_t time_ns, std::uint64_t value);

  std::size_t count() const { return count_; }
  /// In order of time; refers to this object.
  std::span<const Sample> samples() const { return std::span(samples_).first(count_); }
  std::uint64_t first() const { return count_ == 0 ? 0 : samples_.front().value; }
  std::uint64_t last() const { return count_ == 0 ? 0 : samples_[count_ - 1].value; }
  /// From the first value to the last one.
  std::uint64_t span_ns() const { return count_ == 0 ? 0 : samples_[count_ - 1].time_ns - samples_.front().time_ns; }
  /// By how much it rises in a second; nothing if it does not, or if that took too short a time to tell.
  std::optional<std::uint64_t> rise_per_second() const;
  /// For words of a heap: the least value of each quarter of the time is above that of the quarter before, and after
  /// the first quarter it rises about evenly, by 1 % of the heap and 1 MB at least. So does the heap of a program that
  /// keeps what it allocates. Never in short runs.
  bool rises_all_the_time() const;
  /// Programs that have just started fill their tables: whether they go on with it is not known before eight seconds.
  bool is_short() const { return span_ns() < 8'000'000'000; }

 private:
  static constexpr std::size_t max_samples = 32;
  static constexpr std::uint64_t at_once_ns = 2'000'000;

  std::array<Sample, max_samples> samples_{};
  std::size_t count_ = 0;
  std::uint64_t period_ns_ = 1'000'000;  ///< between samples, at least
  std::uint64_t present_ns_ = 0;         ///< when the first of the values came that the last sample was replaced by
  std::uint64_t least_before_ = 0;       ///< of the last sample, without these
};

}  // namespace rtev
