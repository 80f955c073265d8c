// SPDX-License-Identifier: MIT
// Perfetto's own format, protocol buffers: what ui.perfetto.dev shows best.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/perfetto/perfetto_packets.hpp"
#include "formats/perfetto/perfetto_sched.hpp"
#include "formats/perfetto/perfetto_tracks.hpp"
#include "formats/viewer/track_builder.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct PerfettoOptions {
  /// flush() hands out no more often than this, in ns. For files, whose readers come later, rarely is enough; for
  /// anything else 0: at once.
  std::uint64_t flush_interval_ns = 500'000'000;
};

/// Processes, threads, spans, counters, arrows, scheduling. Times are CLOCK_MONOTONIC and stand for Perfetto's
/// CLOCK_BOOTTIME, which alone its scheduler events may have. A file cut anywhere is good up to its last whole packet.
/// Memory is bounded whatever the length.
class PerfettoSink final : public Sink, private TraceWriter {
 public:
  explicit PerfettoSink(Output& output, PerfettoOptions options = {});

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override;
  /// Closes what is open, and hands everything to the Output.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  using EventMessage = perfetto::Message<perfetto::TrackEvent>;

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
  void malformed(const EventContext& context) override;
  void open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
            SpanMark mark) override;
  void close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
             SpanMark mark) override;
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) override;
  void name_process(std::int32_t pid, std::string_view name) override;
  void name_track(const Track& track) override;
  void forget_track(const Track& track) override;

  /// `fill` gets the event's message, with its type and track.
  template <typename Fill>
  void add(std::uint64_t time, perfetto::EventType type, std::uint64_t track, Fill&& fill);
  void name(EventMessage& message, const Event& event, const Registry& registry, std::string_view addition = {});

  perfetto::PacketStream packets_;
  perfetto::Names names_;
  perfetto::Tracks tracks_;
  perfetto::Sched sched_;
  std::uint64_t now_ = 0;  ///< of the event being drawn
  TrackBuilder builder_;
};

}  // namespace rtev
