// SPDX-License-Identifier: MIT
#include "session/live/watermark.hpp"

#include <algorithm>
#include <limits>

namespace rtev {

std::uint64_t Watermark::at(std::uint64_t read_until_ns, const Holds& holds) const {
  constexpr auto never = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t open_since =
      std::min({read_until_ns, holds.interrupted_since.value_or(never), holds.unopened_since.value_or(never)});
  const std::uint64_t held_since = std::min(std::max(holds.behind_since.value_or(never), read_until_ns - max_behind_ns),
                                            holds.unattributed_since.value_or(never));
  // Times in rings are what programs write there: none of them may hold back the others for long.
  return std::min(std::max(oldest_interruption(read_until_ns), open_since - std::min(open_since, slack_ns_)),
                  std::max(held_since, read_until_ns - max_hold_ns));
}

}  // namespace rtev
