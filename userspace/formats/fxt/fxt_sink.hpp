// SPDX-License-Identifier: MIT
// The recording: the stream in the Fuchsia trace format, which viewers show and Replay turns into the same stream
// again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "formats/fxt/metadata_writer.hpp"
#include "formats/fxt/sched_writer.hpp"
#include "formats/fxt/slot_tables.hpp"
#include "formats/fxt/stack_writer.hpp"
#include "formats/viewer/trace_writer.hpp"
#include "formats/viewer/track_builder.hpp"
#include "rtev/fxt_writer.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Writes whole records only, so that the file is valid up to the last write. Memory is bounded. recording_layout.hpp
/// describes the records.
class FxtSink final : public Sink, private TraceWriter {
 public:
  struct Options {
    /// flush() writes at most this often, in ns; 0: always. summary() always writes.
    std::uint64_t max_held_ns = 500'000'000;
  };

  explicit FxtSink(Output& output) : FxtSink(output, Options{}) {}
  FxtSink(Output& output, const Options& options);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override;
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// For tests: counts records that the writer refused. Errors of writing are those of the Output.
  const FxtWriter& writer() const { return writer_; }

 private:
  /// A kind of record, without and with the argument "flags".
  struct Shape {
    fxt::ComposedEvent plain, flagged;
  };

  // TraceWriter
  void begin(const Track& track, const EventContext& context, const Flows& flows) override;
  void end(const Track& track, const EventContext& context) override;
  void stray_end(const Track& track, const EventContext& context) override;
  void counter(const Track& track, const EventContext& context) override;
  void point(const Track& track, const EventContext& context) override;
  void lost(const Track& track, const EventContext& context, const Loss& loss) override;
  void dropped(const EventContext& context, const Loss& loss) override;
  void process(const Track& track, const EventContext& context, const ProcessRecord& record) override;
  void sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                    const Track* next) override;
  void wakeup(const EventContext& context, const Wakeup& wakeup, const Track* woken, const Track* by) override;
  void sample(const EventContext& context, const Sample& sample, const Track* track) override;
  void malformed(const EventContext& context) override;
  void open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
            SpanMark mark) override;
  void close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
             SpanMark mark) override;
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) override;
  void task_span(const Track& track, const TaskSpan& span) override;
  void task_point(const Track& track, std::uint64_t time, std::string_view name, std::string_view text) override;
  void name_process(std::int32_t pid, std::string_view name) override;
  void name_track(const Track& track) override;
  void forget_track(const Track&) override {}

  void custom(const Track& track, const EventContext& context);
  void raw(const Track& track, const EventContext& context);
  void flow(const fxt::ComposedEvent& shape, const Track& track, const Event& event, std::uint64_t id);
  fxt::StringRef task_name(std::string_view name);
  fxt::StringRef string_of(const Event& event, const Registry& registry, bool raw = false);
  fxt::StringRef define(record::StringId id, const Event& event, const Registry& registry);
  template <typename... Values>
  void put(const Shape& shape, const Track& track, const EventContext& context, Values... values);
  Shape compose(fxt::EventType type, std::string_view category, std::initializer_list<fxt::Parameter> parameters = {});

  static constexpr std::size_t counter_ids = 256, families = 3, max_task_names = 64;

  FxtCallback destination_;
  FxtWriter writer_;
  Options options_;
  record::StringTable strings_;
  record::SourceThreads threads_;
  record::MetadataWriter metadata_;
  record::SchedWriter sched_;
  record::StackWriter stacks_;
  TrackBuilder builder_;
  std::uint64_t last_written_ns_ = 0;
  bool kernel_buffers_named_ = false, samples_named_ = false;

  struct SpanShapes {
    Shape begin, end, stray_end;
  };
  std::array<SpanShapes, 2> spans_;  ///< of the runtime, of the user
  std::array<Shape, 5> counters_;    ///< by unit
  std::array<std::array<std::uint8_t, counter_ids>, families> units_{};
  Shape sample_, alloc_, lifecycle_, user_unit_, user_int_, user_text_, user_bytes_, lost_, process_, raw_bytes_,
      raw_value_;
  fxt::ComposedEvent open_, close_, flow_begin_, flow_end_;
  fxt::ComposedEvent task_begin_, task_end_, task_flow_begin_, task_flow_end_, task_point_;
  std::map<std::string, fxt::StringRef, std::less<>> task_names_;
};

}  // namespace rtev
