// SPDX-License-Identifier: MIT
// Adds scheduler records of the kernel to the stream, and knows which threads were interrupted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/recent_entries.hpp"
#include "kernel/kernel_source.hpp"
#include "stream/records.hpp"
#include "stream/timeline.hpp"

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
    recent_.clear();
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
    Place* known = recent_.find(threads_, tid);
    if (known == nullptr) known = &threads_[tid];
    if (time_ns >= known->since_ns) *known = {.since_ns = time_ns, .waits = waits};
  }

  std::unordered_map<std::int32_t, Place> threads_;  ///< that were switched lately
  RecentEntries<Place> recent_;
};

/// Stages switches, wakeups and dropped records in the timeline. One thread.
class SchedStager {
 public:
  /// Without `traces`, records of all processes are staged; else those of processes for which it is true.
  using Traces = std::function<bool(std::int32_t pid)>;
  SchedStager(kernel::SchedSource& source, Timeline& timeline, Traces traces)
      : source_(source), timeline_(timeline), traces_(std::move(traces)) {}

  /// Stages the records that wait, but not many more than `max_records`, and what was dropped before `now_ns`.
  void stage(std::uint64_t now_ns, std::uint64_t max_records);

  /// Where buffers could not be emptied: later records may still come in order.
  std::optional<std::uint64_t> behind_since() const { return behind_since_ns_; }
  /// When the thread that has been waiting longest was interrupted; forgets those before `oldest_ns`.
  std::optional<std::uint64_t> interrupted_since(std::uint64_t oldest_ns) { return interrupted_.since(oldest_ns); }

 private:
  void stage_records(std::uint64_t max_records);
  void stage_drops(std::uint64_t now_ns);

  kernel::SchedSource& source_;
  Timeline& timeline_;
  Traces traces_;
  InterruptedThreads interrupted_;
  std::uint64_t newest_ns_ = 0;  ///< of all records so far
  std::optional<std::uint64_t> behind_since_ns_;
};

}  // namespace rtev
