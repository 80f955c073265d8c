// SPDX-License-Identifier: MIT
// Trace events in JSON, as chrome://tracing defines them and Perfetto reads them: one event a line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/chrome/chrome_event.hpp"
#include "formats/line_sink.hpp"
#include "formats/viewer/track_builder.hpp"
#include "formats/viewer/viewer_writer.hpp"

namespace rtev {

/// The pid of the process "CPUs", which has a thread for each CPU, for viewers without rows of CPUs. Their tids are
/// above it. It is above every pid of Linux, and above the tids of tracks of rings in any trace that can be loaded.
inline constexpr std::int32_t cpus_pid = 0x7FFF'0000;

/// A bare array: viewers accept one that was cut after a whole line, but no unclosed object. It is valid JSON once
/// summary() was called.
///
/// Viewers read "ts" as a double of microseconds, which distinguishes nanoseconds for 25 days, and drop negative times.
/// So "ts" counts from one day before the start, which leaves room for older events of rings; "ts_origin" in the
/// metadata event "rtev_header" is that time. Memory is bounded.
class ChromeSink final : public LineSink, private ViewerWriter {
 public:
  explicit ChromeSink(Output& output);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  /// Closes the array and writes everything to the Output.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  /// Viewers report an empty name as an error.
  static constexpr std::string_view no_name = "[no name]";

  /// The row of a CPU.
  struct CpuRow {
    bool is_busy = false;
    std::uint64_t newest = 0;  ///< time of its last event
  };

  void begin_span(const Track& track, const ViewerEvent& event, const Flows& flows) override;
  void end_span(const Track& track, std::uint64_t time, Details details) override;
  void instant(const Track* track, const ViewerEvent& event) override;
  void counter(const Track& track, const EventContext& context) override;
  void point(const Track& track, const EventContext& context) override;
  void process(const Track& track, const EventContext& context, const ProcessRecord& record) override;
  void sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                    const Track* next) override;
  void wakeup(const EventContext&, const Wakeup&, const Track*, const Track*) override {}  // ends an interval
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) override;
  void name_process(std::int32_t pid, std::string_view name) override;
  void name_track(const Track& track) override;
  void thread_interval(const Track& track, const ThreadInterval& interval) override;
  void forget_track(const Track& /*track*/) override {}

  void start(char phase, std::uint64_t time, const Track& track) { event_.start(phase, time, track.pid, track.tid); }
  void finish(Details details = {});
  void flow(char phase, const ViewerEvent& from, const Track& track, std::uint64_t id);
  void graph(const Track& track, const EventContext& context, std::string_view unit, std::integral auto value);
  template <typename Value>
  void metadata(std::string_view name, std::int32_t pid, std::int32_t tid, std::string_view key, const Value& value);
  void name_row(std::int32_t pid, std::int32_t tid, std::string_view name, std::int64_t sort_index);
  void sort_process(std::int32_t pid, int sort_index);
  CpuRow* row_of(std::uint32_t cpu);
  void enter_cpu(std::uint32_t cpu, std::uint64_t time, const Thread& thread, const Track& track,
                 const ThreadInterval* waited);
  void clear_cpu(std::uint32_t cpu, std::uint64_t time, std::string_view why);

  TrackBuilder builder_{*this};
  std::optional<ThreadInterval> waited_;  ///< the wait for a CPU that ended last
  std::map<std::uint32_t, CpuRow> rows_;
  ChromeEvent event_{out_};
  std::string scratch_, unnamed_;  ///< texts under construction
};

}  // namespace rtev
