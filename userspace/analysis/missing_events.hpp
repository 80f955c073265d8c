// SPDX-License-Identifier: MIT
// What a stream lacks, as far as its events and its summary say.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rtev/event.hpp"
#include "stream/records.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Counts the scheduler events that were dropped. A fold over the stream: the summary has the same number as the
/// events, but a truncated stream has no summary.
class DroppedEvents {
 public:
  void add(const Event& event, const Batch& batch) {
    if (!is_sched_loss(event)) return;
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

/// Words of a whole ring that were overwritten before it was read.
inline std::uint64_t words_overwritten_before(const RunSummary& summary, const Registry& registry) {
  std::uint64_t words = 0;
  if (!summary.whole_ring) return words;
  for (const ProcessInfo& info : registry.processes()) words += info.words.before_attach;
  return words;
}

}  // namespace rtev
