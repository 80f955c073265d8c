// SPDX-License-Identifier: MIT
// Releases the stream to the sink, and forgets images once their last event is released.
#pragma once

#include <cstdint>
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

  /// An image that ended, kept until its last event is released.
  struct EndedImage {
    std::uint64_t time_ns;  ///< no event of it is later
    ProcessIndex process;
    std::vector<std::uint32_t> slots;
  };
  void add_ended(EndedImage image) { ended_.push_back(std::move(image)); }

  /// Releases events up to the watermark, then forgets images that ended before it.
  void release(std::uint64_t watermark);
  /// The same with all that is left.
  void release_all();
  /// Flushes the sink, if that has not been done for a while or nothing is held back.
  void flush(std::uint64_t now_ns);

  /// True if nothing is held back.
  bool is_empty() const { return timeline_.empty() && ended_.empty(); }
  /// Adds the numbers of released, late and forced events.
  void add_figures(RunSummary& summary) const;

 private:
  void consume(std::uint64_t watermark);
  void forget_ended(std::uint64_t watermark);

  Timeline& timeline_;
  Registry& registry_;
  Sink& sink_;
  std::vector<EndedImage> ended_;
  decltype(RunSummary::events) events_{};  ///< released, by kind
  std::uint64_t last_flush_ns_ = 0;
};

}  // namespace rtev
