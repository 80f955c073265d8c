// SPDX-License-Identifier: MIT
// How many scheduler events a stream lacks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rtev/event.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// A fold over the stream. The summary has the same number as the events, but a truncated stream has no summary.
class DroppedEvents {
 public:
  void add(const Event& event, const Batch& batch) {
    if (event.kind != EventKind::lost || Source::unpack(event.source).slot != 0) return;
    if (const auto loss = batch.payload_as<Loss>(event)) dropped_ += loss->words;
  }
  void add(const RunSummary& summary) {
    std::uint64_t count = 0;
    for (const RunSummary::Drop& drop : summary.drops) {
      if (drop.kind == "switch" || drop.kind == "wakeup") count += drop.count;
    }
    dropped_ = std::max(dropped_, count);
  }

  /// Switches and wakeups.
  std::uint64_t count() const { return dropped_; }

 private:
  std::uint64_t dropped_ = 0;
};

}  // namespace rtev
