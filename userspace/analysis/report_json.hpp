// SPDX-License-Identifier: MIT
// Members that the JSON of several reports has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "analysis/pause_finder.hpp"
#include "base/json_writer.hpp"
#include "base/utc_time.hpp"
#include "stream/sink.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// What kind of report it is: the first members of any.
inline void add_type(JsonWriter& json, std::string_view type, std::string_view version) {
  json.member("type", type);
  json.member("schema", 1);
  json.member("version", version);
}

/// When a run, or the part of it that is reported, began and ended.
template <typename Run>
void add_span(JsonWriter& json, const Run& run) {
  json.member("start_ns", run.start_ns);
  json.member("end_ns", run.end_ns);
  if (run.run_realtime_ns == 0) return;
  UtcTime utc;
  utc.set_origin(run.run_ns, run.run_realtime_ns);
  std::array<char, UtcTime::length> text;
  json.member("time", utc.put(text, run.start_ns));
}

inline void add_not_recorded(JsonWriter& json, const NotRecorded& not_recorded) {
  if (not_recorded.selection.empty()) return;
  json.values("not_recorded", not_recorded.words());
  if (not_recorded.lacks_pauses()) json.values("not_recorded_phases", not_recorded.outermost());
}

/// The first members of any report of type LatencyReport, PausesReport or StatsReport. docs/json.md documents schema 1.
template <typename Report>
void add_head(JsonWriter& json, std::string_view type, const Report& report) {
  add_type(json, type, report.version);
  add_span(json, report);
  json.member("truncated", report.truncated);
  add_not_recorded(json, report.not_recorded);
}

/// How many scheduler events the kernel dropped. Where there are none at all, they may not have been traced.
inline void add_sched_dropped(JsonWriter& json, std::string_view key, std::uint64_t dropped, bool scheduler_seen,
                              bool truncated) {
  json.member(key, known_count(dropped, truncated || !scheduler_seen));
}

/// The parts are null where all of it is unknown.
inline void add_split(JsonWriter& json, std::string_view key, const TimeSplit& time) {
  const bool is_unknown = time.is_unknown();
  json.key(key).object([&] {
    json.member("on_cpu", known_count(time.on_cpu, is_unknown));
    json.member("runnable", known_count(time.runnable, is_unknown));
    json.member("sleeping", known_count(time.sleeping, is_unknown));
    json.member("uninterruptible", known_count(time.uninterruptible, is_unknown));
    json.member("stopped", known_count(time.stopped, is_unknown));
    json.member("unknown", time.unknown);
  });
}

inline void add_unfinished(JsonWriter& json, const std::array<std::uint64_t, unfinished_count>& counts) {
  json.key("unfinished").object([&] {
    for (std::size_t i = 0; i < unfinished_count; ++i) json.member(to_string(static_cast<Unfinished>(i)), counts[i]);
  });
}

}  // namespace rtev
