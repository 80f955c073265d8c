// SPDX-License-Identifier: MIT
// Delivers the stream to the sink, and forgets images once their last event is delivered.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "stream/registry.hpp"
#include "stream/sink.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// One thread.
class StreamOutput {
 public:
  StreamOutput(Timeline& timeline, Registry& registry, Sink& sink)
      : timeline_(timeline), registry_(registry), sink_(sink) {}

  /// An image that ended, kept until its last event is delivered.
  struct EndedImage {
    std::uint64_t time_ns;  ///< no event of it is later
    ProcessIndex process;
    std::vector<std::uint32_t> slots;
  };
  void add_ended(EndedImage image) { ended_.push_back(std::move(image)); }

  /// Delivers events up to the watermark, but not for long at a time: rings have to be read. Forgets images that ended
  /// before the last of them.
  void deliver(std::uint64_t watermark);
  /// True if the last deliver() did not come to its end.
  bool has_backlog() const { return has_backlog_; }
  /// Delivers all events. Stops soon after the deadline (CLOCK_MONOTONIC); what is left then is counted.
  void deliver_all(std::uint64_t deadline_ns);
  /// How long it takes to deliver what an owner has staged, in ns, by recent measurements. It depends on the sink, on
  /// the reader of its output, and on the length of the events' names.
  std::uint64_t staged_ns(std::uint32_t owner) const;
  /// How many more events an owner may stage until that takes so long.
  std::uint64_t room(std::uint32_t owner, std::uint64_t max_ns) const;
  /// Flushes the sink, if that has not been done for a while or nothing is held back.
  void flush(std::uint64_t now_ns);

  /// True if nothing is held back.
  bool is_empty() const { return timeline_.empty() && ended_.empty(); }
  /// Adds the numbers of delivered, late and forced events.
  void add_figures(RunSummary& summary) const;

 private:
  /// What events take: measured of some of them.
  struct Cost {
    /// Until it is measured: that of the text format. A longer time would leave no room for a fast program, whose
    /// events of the first 40 ms are staged before any of them is measured.
    double event_ns = 100;
    std::uint64_t ns = 0, events = 0;  ///< of the measurement that has begun
  };
  void measure(const Batch& batch);
  double event_ns(std::uint32_t owner) const;
  std::uint64_t consume(std::uint64_t watermark, std::uint64_t deadline_ns);
  void forget_ended(std::uint64_t watermark);

  Timeline& timeline_;
  Registry& registry_;
  Sink& sink_;
  std::vector<EndedImage> ended_;
  decltype(RunSummary::events) events_{};  ///< delivered, by kind
  std::uint64_t unwritten_ = 0;            ///< staged at the end
  std::uint64_t last_flush_ns_ = 0;
  bool has_backlog_ = false;
  std::uint64_t batches_ = 0;
  std::unordered_map<std::uint32_t, Cost> costs_;  ///< of events, by owner
};

}  // namespace rtev
