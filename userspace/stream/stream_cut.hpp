// SPDX-License-Identifier: MIT
// Cuts a stream at a time, where one tracer hands it over to the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "stream/sink.hpp"

namespace rtev {

/// Forwards the stream, and calls a function between the last event up to a time and the first one after it. Two
/// tracers that cut at the same time have each event of a ring on the same side.
class StreamCut final : public ForwardingSink {
 public:
  /// Of the stream after the cut.
  enum class Rest : std::uint8_t { dropped, given };
  /// The sink has had all until then. If it returns false, the stream goes on without a cut.
  using OnCut = std::function<bool(std::uint64_t time_ns, const Registry& registry)>;

  explicit StreamCut(Sink& sink) : ForwardingSink(sink) {}

  /// False if the stream is past this time already.
  bool cut_at(std::uint64_t time_ns, Rest rest, OnCut on_cut);
  /// A cut that is still to come does not.
  void cancel() {
    if (!is_past_) time_ns_ = 0;
  }
  /// The time up to which the sink has had the stream.
  std::uint64_t reached_ns() const { return reached_ns_; }

  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override;

 private:
  bool cross(const Registry& registry);
  void consume_past(const Batch& batch, const Registry& registry);

  std::uint64_t time_ns_ = 0;  ///< of the cut; 0: there is none
  Rest rest_ = Rest::given;
  OnCut on_cut_;
  bool is_past_ = false;
  std::uint64_t reached_ns_ = 0;
  std::vector<Event> kept_;
};

}  // namespace rtev
