// SPDX-License-Identifier: MIT
// A histogram of durations as metrics need it: the same buckets for ever, in fixed memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rtev {

/// Counts durations twice: in few buckets with fixed bounds, as Prometheus has them, and in buckets of an exponential
/// histogram of OpenTelemetry, each of which is 9 % wider than the one before. Both are exact: a duration on a bound is
/// in the bucket below. Times in ns. One thread.
class DurationHistogram {
 public:
  /// Upper bounds of the classic buckets but the last one, which has none.
  static constexpr std::array<std::uint64_t, 18> bounds_ns{
      10'000,      25'000,      50'000,      100'000,       250'000,       500'000,
      1'000'000,   2'500'000,   5'000'000,   10'000'000,    25'000'000,    50'000'000,
      100'000'000, 250'000'000, 500'000'000, 1'000'000'000, 2'500'000'000, 10'000'000'000};

  /// Of the exponential buckets: bucket i holds (base^i, base^(i+1)] seconds, with base = 2^(2^-scale).
  static constexpr std::int32_t scale = 3;
  /// Index of the first one that is kept: 108 ns. Shorter durations are in it, too.
  static constexpr std::int32_t first_index = -185;
  /// The last one holds all from 123 s on.
  static constexpr std::size_t bucket_count = 241;

  void record(std::uint64_t ns);
  /// Also counts the durations of another one.
  void add(const DurationHistogram& other);
  /// Leaves out those of another one, all of which must be in this one.
  void subtract(const DurationHistogram& other);

  std::uint64_t count() const { return count_; }
  /// Stays at its greatest value should it not fit.
  std::uint64_t sum_ns() const { return sum_ns_; }
  /// By bucket: durations that are in no earlier one.
  const std::array<std::uint64_t, bounds_ns.size() + 1>& classic() const { return classic_; }
  const std::array<std::uint64_t, bucket_count>& exponential() const { return exponential_; }

  /// One line, without tabs: how an agent hands it to the next one.
  std::string text() const;
  /// Nothing for other text, and for that of a version with other buckets.
  static std::optional<DurationHistogram> parse(std::string_view text);

 private:
  std::uint64_t count_ = 0, sum_ns_ = 0;
  std::array<std::uint64_t, bounds_ns.size() + 1> classic_{};
  std::array<std::uint64_t, bucket_count> exponential_{};
};

}  // namespace rtev
