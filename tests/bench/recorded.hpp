// SPDX-License-Identifier: MIT
// What a recording holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rtev::bench {

struct Recorded {
  std::uint64_t events = 0;           ///< of rings
  std::uint64_t others = 0;           ///< of the scheduler and of processes, and losses
  std::uint64_t lost_words = 0;       ///< of rings
  std::vector<std::uint64_t> gaps{};  ///< the time of the first event after each loss in a ring
};

/// Throws if it cannot be read.
Recorded recorded_in(const std::string& file);

}  // namespace rtev::bench
