// SPDX-License-Identifier: MIT
// The counts of events in a summary, where only some events are handed on.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "rtev/event.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Counts events as RunSummary does. One thread.
class EventCounts {
 public:
  void add(std::span<const Event> events) {
    for (const Event& event : events) {
      ++events_[static_cast<std::size_t>(event.kind)];
      if ((event.flags & flag_late) != 0) ++late_;
    }
  }

  /// The summary, as of the events that were counted.
  RunSummary of(RunSummary summary) const {
    summary.events = events_;
    summary.late = late_;
    return summary;
  }

 private:
  std::array<std::uint64_t, event_kind_count> events_{};
  std::uint64_t late_ = 0;
};

}  // namespace rtev
