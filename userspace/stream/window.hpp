// SPDX-License-Identifier: MIT
// A part of a recording, as --from, --to and --around select it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stream/sink.hpp"

namespace rtev {

/// A moment of a run: so long after its beginning, or a local time of day.
struct TimePoint {
  std::chrono::nanoseconds time{};
  bool is_time_of_day = false;

  /// "1.5", "1.5s", "200ms"; "14:03", "14:03:22", "14:03:22.125". Nothing for other text.
  static std::optional<TimePoint> parse(std::string_view text);
  /// CLOCK_MONOTONIC. Of a time of day the first one that is not before the run began, within a day; the beginning if
  /// the run does not know the time of day.
  std::uint64_t in(const RunHeader& header) const;
};

/// All of a run where nothing is set.
struct Window {
  std::optional<TimePoint> from{}, to{};
  std::optional<TimePoint> around{};  ///< instead of both: this long before and after it
  static constexpr std::chrono::nanoseconds around_margin = std::chrono::milliseconds(100);
  std::optional<std::chrono::nanoseconds> duration{};  ///< from its begin on

  bool is_whole() const { return !from && !to && !around && !duration; }
  struct Bounds {
    std::uint64_t begin_ns = 0, end_ns = UINT64_MAX;  ///< CLOCK_MONOTONIC, both within
  };
  Bounds in(const RunHeader& header) const;
};

}  // namespace rtev
