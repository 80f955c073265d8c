// SPDX-License-Identifier: MIT
// A recording in slices of equal time. Its length is not known before its end: when the slices are used up, they become
// twice as long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rtev {

class SliceClock {
 public:
  static constexpr std::size_t max_slices = 512;
  static constexpr unsigned first_bits = 24;  ///< slices begin with 2^24 ns, 17 ms

  void begin(std::uint64_t time_ns) { origin_ns_ = time_ns; }
  /// False if the time is beyond the slices: merge them by pairs and call widen().
  bool reaches(std::uint64_t time_ns) const { return since_origin(time_ns) >> bits_ < max_slices; }
  void widen() { ++bits_; }

  /// Of times that are reached. Times before the first slice are in it.
  std::size_t at(std::uint64_t time_ns) const {
    return std::min(static_cast<std::size_t>(since_origin(time_ns) >> bits_), max_slices - 1);
  }
  std::uint64_t end_of(std::size_t slice) const {
    return origin_ns_ + (static_cast<std::uint64_t>(slice) + 1) * length_ns();
  }
  std::uint64_t length_ns() const { return std::uint64_t{1} << bits_; }

  /// Calls visit(slice, ns) for each slice that has a part of the time from `begin_ns` to `end_ns`.
  template <typename Visit>
  void each(std::uint64_t begin_ns, std::uint64_t end_ns, const Visit& visit) const {
    begin_ns = std::max(begin_ns, origin_ns_);
    while (begin_ns < end_ns) {
      const std::size_t slice = at(begin_ns);
      const std::uint64_t until = slice + 1 < max_slices ? std::min(end_ns, end_of(slice)) : end_ns;
      visit(slice, until - begin_ns);
      begin_ns = until;
    }
  }

 private:
  std::uint64_t since_origin(std::uint64_t time_ns) const { return time_ns - std::min(time_ns, origin_ns_); }

  std::uint64_t origin_ns_ = 0;
  unsigned bits_ = first_bits;
};

}  // namespace rtev
