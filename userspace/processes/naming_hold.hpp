// SPDX-License-Identifier: MIT
// How long the stream waits for the names of a new program's events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace rtev {

/// By user: since when a program of theirs is being inspected whose events are in the stream.
using UnnamedSince = std::map<std::uint32_t, std::uint64_t>;

inline void add_unnamed(UnnamedSince& unnamed, std::uint32_t user, std::uint64_t since_ns) {
  auto& oldest = unnamed.try_emplace(user, since_ns).first->second;
  oldest = std::min(oldest, since_ns);
}

/// Events that were released before their program is named get the names of the newest OCaml. So the stream waits for
/// inspections, but a user who starts new programs all the time must not delay the events of all others: what exceeds
/// `free_ns` is taken from an allowance of the user.
class NamingHold {
 public:
  static constexpr std::uint64_t free_ns = 50'000'000, allowance_ns = 250'000'000;
  /// An allowance grows by 1 ns in so many.
  static constexpr std::uint64_t refill_interval = 100;

  /// Since when the stream waits, if it does. Time that goes back stands still.
  std::optional<std::uint64_t> since(const UnnamedSince& unnamed, std::uint64_t now_ns) {
    const std::uint64_t elapsed = now_ns - std::min(now_ns, last_ns_), free_since = now_ns - std::min(now_ns, free_ns);
    last_ns_ = std::max(last_ns_, now_ns);
    for (auto& [user, used] : used_ns_) {
      const auto waits = unnamed.find(user);
      if (waits != unnamed.end() && waits->second < free_since)
        used = std::min(allowance_ns, used + elapsed);
      else
        used -= std::min(used, elapsed / refill_interval);
    }
    std::erase_if(used_ns_, [](const auto& entry) { return entry.second == 0; });
    std::optional<std::uint64_t> oldest;
    for (const auto& [user, since_ns] : unnamed) {
      const bool may_hold = since_ns >= free_since || used_ns_.try_emplace(user, 1).first->second < allowance_ns;
      const std::uint64_t held_since = may_hold ? since_ns : free_since;
      oldest = std::min(oldest.value_or(held_since), held_since);
    }
    return oldest;
  }

 private:
  std::uint64_t last_ns_ = 0;
  std::map<std::uint32_t, std::uint64_t> used_ns_;  ///< of allowances, by user
};

}  // namespace rtev
