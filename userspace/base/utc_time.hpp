// SPDX-License-Identifier: MIT
// Times of events as dates and times of day.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rtev {

/// Writes times of CLOCK_MONOTONIC as UTC. Fast for times of the same second: only the first one needs a calendar.
class UtcTime {
 public:
  /// As in "2026-11-26T14:03:22.411123456Z" (ISO 8601).
  static constexpr std::size_t length = 30;

  /// Without a call the dates are those since 1970.
  void set_origin(std::uint64_t monotonic_ns, std::uint64_t realtime_ns) { offset_ns_ = realtime_ns - monotonic_ns; }
  /// Writes a time to `text`, and returns it.
  std::string_view put(std::array<char, length>& text, std::uint64_t monotonic_ns);

 private:
  void change_second(std::uint64_t second);

  std::uint64_t offset_ns_ = 0;  ///< from CLOCK_MONOTONIC to CLOCK_REALTIME, modulo 2^64
  std::uint64_t second_ = UINT64_MAX;
  std::array<char, 20> prefix_{};  ///< of all times of this second: to the point
};

}  // namespace rtev
