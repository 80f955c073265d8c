// SPDX-License-Identifier: MIT
// Gives a stream to two sinks.
#pragma once

#include "stream/sink.hpp"

namespace rtev {

/// Both must outlive it. The first one goes first.
class TeeSink final : public ForwardingSink {
 public:
  TeeSink(Sink& first, Sink& second) : ForwardingSink(first), second_(second) {}

  void header(const RunHeader& header) override {
    sink_.header(header);
    second_.header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    sink_.consume(batch, registry);
    second_.consume(batch, registry);
  }
  void advance(std::uint64_t time_ns, const Registry& registry) override {
    sink_.advance(time_ns, registry);
    second_.advance(time_ns, registry);
  }
  void flush() override {
    sink_.flush();
    second_.flush();
  }
  bool wants_checkpoint() const override { return sink_.wants_checkpoint() || second_.wants_checkpoint(); }
  void checkpoint(const RunSummary& so_far, const Registry& registry) override {
    sink_.checkpoint(so_far, registry);
    second_.checkpoint(so_far, registry);
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    sink_.summary(summary, registry);
    second_.summary(summary, registry);
  }

 private:
  Sink& second_;
};

}  // namespace rtev
