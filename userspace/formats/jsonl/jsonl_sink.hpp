// SPDX-License-Identifier: MIT
// JSON lines, schema 2: a header, one object an event, a summary. docs/json.md documents the keys.
#pragma once

#include <string>
#include <utility>

#include "base/json_writer.hpp"
#include "base/utc_time.hpp"
#include "formats/line_sink.hpp"

namespace rtev {

class JsonlSink final : public LineSink {
 public:
  explicit JsonlSink(Output& output, std::string label = {}) : LineSink(output), label_(std::move(label)) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  /// Writes the last line and flushes.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  void write(const Event& event, const Batch& batch, const Registry& registry);
  void start(const Event& event, std::string_view type);
  void origin(const Event& event, const Registry& registry);
  void ring_event(const Event& event, const Batch& batch, const Registry& registry);
  void lost(const Event& event, const Loss& loss);
  void user(const Event& event, const Batch& batch, const Registry& registry);
  void custom(std::string_view event, std::span<const std::byte> payload);
  void process(const Event& event, const ProcessRecord& record, const Registry& registry);
  void sched_switch(const SchedSwitch& change);
  void wakeup(const Wakeup& wakeup);
  void sample(const Event& event, const Sample& sample, const Registry& registry);
  void end_object_line();

  std::string label_;  ///< of the header
  JsonWriter json_{out_};
  std::uint64_t start_ns_ = 0;
  UtcTime utc_;
  bool has_utc_ = false;  ///< the time of day of the start is known
};

}  // namespace rtev
