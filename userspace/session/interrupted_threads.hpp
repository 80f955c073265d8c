// SPDX-License-Identifier: MIT
// Which threads were interrupted, and since when.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "stream/records.hpp"

namespace rtev {

/// An interrupted thread may have taken the time of an event that it has not published yet: the stream must wait for
/// it. A thread that runs or went to sleep by itself publishes within an instant. No ThreadTracker: this decides how
/// far the merge may go, so it sees switches before the merge, in any order of cpus.
class InterruptedThreads {
 public:
  void add(std::uint64_t time_ns, const SchedSwitch& change) {
    if (change.prev.tracked)
      note(change.prev.tid, time_ns, change.state != LeftState::sleeping && change.state != LeftState::dead);
    if (change.next.tracked) note(change.next.tid, time_ns, false);
  }

  /// When the thread that has been waiting longest was interrupted; forgets those that left before `forget_before_ns`.
  std::optional<std::uint64_t> since(std::uint64_t forget_before_ns) {
    std::optional<std::uint64_t> oldest;
    std::erase_if(threads_, [&](const auto& entry) {
      const Place& thread = entry.second;
      if (thread.since_ns < forget_before_ns) return true;
      if (thread.waits) oldest = std::min(oldest.value_or(thread.since_ns), thread.since_ns);
      return false;
    });
    return oldest;
  }

 private:
  struct Place {
    std::uint64_t since_ns = 0;
    bool waits = false;
  };
  void note(std::int32_t tid, std::uint64_t time_ns, bool waits) {
    Place& thread = threads_[tid];
    if (time_ns >= thread.since_ns) thread = {.since_ns = time_ns, .waits = waits};
  }

  std::unordered_map<std::int32_t, Place> threads_;  ///< that were switched lately
};

}  // namespace rtev
