// SPDX-License-Identifier: MIT
// How many scheduler events a stream lacks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rtev/event.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// A fold over the stream. The summary knows as much as the events, but a stream that was cut has none.
class DroppedEvents {
 public:
  void add(const Event& event, const Batch& batch) {
    if (event.kind != EventKind::lost || Source::unpack(event.source).slot != 0) return;
    if (const auto loss = batch.payload_as<Loss>(event)) told_ += loss->words;
  }
  void add(const RunSummary& summary) {
    std::uint64_t dropped = 0;
    for (const RunSummary::Drop& drop : summary.drops) {
      if (drop.kind == "switch" || drop.kind == "wakeup") dropped += drop.count;
    }
    told_ = std::max(told_, dropped);
  }

  /// Switches and wakeups.
  std::uint64_t count() const { return told_; }

 private:
  std::uint64_t told_ = 0;
};

}  // namespace rtev
