// SPDX-License-Identifier: MIT
// JSON lines, schema 1: a header, one object an event, a summary. docs/json.md documents the schema.
#pragma once

#include "formats/line_sink.hpp"

namespace rtev {

class JsonlSink final : public LineSink {
 public:
  explicit JsonlSink(Output& output) : LineSink(output) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  /// The last line; hands everything to the Output.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  void write(const Event& event, const Batch& batch, const Registry& registry);
  void start(const Event& event, std::string_view type);
  void ring_origin(const Event& event, const Registry& registry);
  void ring_event(const Event& event, const Batch& batch, const Registry& registry);
  void name_or_id(const Event& event, const Registry& registry);
  void user(const Event& event, const Batch& batch, const Registry& registry);
  void process(const Event& event, const ProcessRecord& record, const Registry& registry);
  void thread(const Thread& thread);
  void thread_details(const Thread& thread);
  void process_figures(const ProcessInfo& info);
  void words(const Accounting& words);
  void text(std::string_view key, std::string_view value);
  void text_or_null(std::string_view key, std::string_view value);

  std::uint64_t start_ns_ = 0;
};

}  // namespace rtev
