// SPDX-License-Identifier: MIT
// What a recording holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rtev::bench {

struct Recorded {
  std::uint64_t events = 0;      ///< of rings
  std::uint64_t lost_words = 0;  ///< of rings
  std::uint64_t scheduler = 0;   ///< switches and wake-ups
  std::uint64_t first_ns = UINT64_MAX, last_ns = 0;
  std::vector<std::uint64_t> gaps{};  ///< the time of the first event after each loss in a ring

  double scheduler_per_second() const {
    return last_ns <= first_ns ? 0 : static_cast<double>(scheduler) * 1e9 / static_cast<double>(last_ns - first_ns);
  }
};

/// Throws if it cannot be read.
Recorded recorded_in(const std::string& file);

}  // namespace rtev::bench
