// SPDX-License-Identifier: MIT
// Trace events in JSON, as chrome://tracing defined them and Perfetto reads them: one event a line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/chrome/chrome_event.hpp"
#include "formats/line_sink.hpp"
#include "formats/viewer/thread_states.hpp"
#include "formats/viewer/track_builder.hpp"

namespace rtev {

/// The row of each cpu is a thread of this process, for viewers that know nothing of cpus. Its tids lie above it.
/// Beyond every real pid, and beyond the tids of rings' own tracks in any trace that can be loaded.
inline constexpr std::int32_t cpus_pid = 0x7FFF'0000;

/// A bare array, for viewers take one that was cut short, while an object that is not closed is lost. Strictly valid
/// once summary() was called; until then viewers want whole lines and nothing else.
///
/// Viewers take "ts" for a double of microseconds, which keeps nanoseconds apart for 25 days, and drop what is before
/// 0. It counts from a day before the recording, so that what rings remember of the time before has room; the metadata
/// event "rtev_header" says from when. Memory is bounded whatever the length.
class ChromeSink final : public LineSink, private TraceWriter {
 public:
  explicit ChromeSink(Output& output);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  /// Closes the array; hands everything to the Output.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  /// Viewers take an empty name for an error.
  static constexpr std::string_view no_name = "[no name]";

  /// What the row of a cpu shows.
  struct CpuRow {
    bool is_busy = false;
    std::uint64_t newest = 0;  ///< time of its last event
  };

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
  void forget_track(const Track& track) override { states_.forget(track); }

  void start(char phase, std::uint64_t time, const Track& track) { event_.start(phase, time, track.pid, track.tid); }
  void start_instant(char scope, std::uint64_t time, const Track& track, std::string_view name,
                     std::string_view category);
  void finish();
  std::string_view name_of(const Event& event, const Registry& registry);
  void name_span(const Event& event, const Registry& registry);
  void mark_late(const Event& event);
  void flow(char phase, std::uint64_t time, const Track& track, std::uint64_t id);
  void graph(const Track& track, const EventContext& context, std::string_view unit, std::integral auto value);
  void name_row(std::int32_t pid, std::int32_t tid, std::string_view name, std::int64_t sort_index);
  void sort_process(std::int32_t pid, int sort_index);
  std::uint64_t in_order(std::uint64_t time);
  void thread_state(const ThreadStates::Ended& ended);
  CpuRow* row_of(std::uint32_t cpu);
  void occupy(std::uint32_t cpu, std::uint64_t time, const Thread& thread, const Track& track,
              const ThreadStates::Ended& waited);
  void vacate(std::uint32_t cpu, std::uint64_t time, std::string_view why);

  TrackBuilder builder_{*this};
  ThreadStates states_;
  std::map<std::uint32_t, CpuRow> rows_;
  std::uint64_t sched_now_ = 0;  ///< the latest time of a switch or wakeup
  ChromeEvent event_{out_};
  std::string scratch_, unnamed_;  ///< texts under construction
};

}  // namespace rtev
