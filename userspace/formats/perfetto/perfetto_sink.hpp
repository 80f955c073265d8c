// SPDX-License-Identifier: MIT
// Perfetto's format, which is protocol buffers.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/perfetto/perfetto_packets.hpp"
#include "formats/perfetto/perfetto_samples.hpp"
#include "formats/perfetto/perfetto_sched.hpp"
#include "formats/perfetto/perfetto_tracks.hpp"
#include "formats/viewer/track_builder.hpp"
#include "formats/viewer/viewer_writer.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct PerfettoOptions {
  /// flush() writes at most this often, in ns; 0: always.
  std::uint64_t flush_interval_ns = 500'000'000;
};

/// Processes, threads, spans, counters, arrows, scheduling. Times are CLOCK_MONOTONIC, declared as CLOCK_BOOTTIME,
/// which Perfetto requires for scheduler events. A file that is cut can be read up to its last whole packet. Memory is
/// bounded.
class PerfettoSink final : public Sink, private ViewerWriter {
 public:
  explicit PerfettoSink(Output& output, PerfettoOptions options = {});

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override;
  /// Closes open spans and writes everything to the Output.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  using EventMessage = perfetto::Message<perfetto::TrackEvent>;

  void begin_span(const Track& track, const ViewerEvent& event, const Flows& flows) override;
  void end_span(const Track& track, std::uint64_t time, Details details) override;
  void instant(const Track* track, const ViewerEvent& event) override;
  void counter(const Track& track, const EventContext& context) override;
  void sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                    const Track* next) override;
  void wakeup(const EventContext& context, const Wakeup& wakeup, const Track* woken, const Track* by) override;
  void sample(const EventContext& context, const Sample& sample, const Track* track) override;
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) override;
  void entered_unseen(std::uint64_t time, std::uint32_t cpu, const Thread& thread) override;
  void name_process(std::int32_t pid, std::string_view name) override;
  void name_track(const Track& track) override;
  void forget_track(const Track& track) override;

  /// `fill` gets the message of the event, which has its type and track already.
  template <typename Fill>
  void add(std::uint64_t time, perfetto::EventType type, std::uint64_t track, Fill&& fill);
  void loss(std::uint64_t track, const ViewerEvent& event);

  perfetto::PacketWriter packets_;
  perfetto::Names names_;
  perfetto::Tracks tracks_;
  perfetto::Sched sched_;
  perfetto::Samples samples_;
  std::uint64_t now_ = 0;  ///< newest time so far
  TrackBuilder builder_;
};

}  // namespace rtev
