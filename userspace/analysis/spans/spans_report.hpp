// SPDX-License-Identifier: MIT
// The report of `rtev-bpf latency --span`: how long the spans of a program are that it marks itself, and what their
// time was spent on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/sample_history.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"
#include "stream/records.hpp"
#include "stream/stacks.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// What the domain of a span did meanwhile, in ns.
struct SpanTime {
  std::uint64_t code = 0;     ///< on a cpu, outside of pauses
  std::uint64_t gc = 0;       ///< on a cpu, in pauses
  std::uint64_t domains = 0;  ///< blocked in pauses: it waited for other domains
  std::uint64_t no_cpu = 0;   ///< runnable
  std::uint64_t blocked = 0;  ///< outside of pauses
  std::uint64_t unknown = 0;

  std::uint64_t total() const { return code + gc + domains + no_cpu + blocked + unknown; }
  bool is_unknown() const { return unknown > 0 && unknown == total(); }
  SpanTime& operator+=(const SpanTime& other);
  /// `pauses`: of `span`.
  static SpanTime of(const TimeSplit& span, const TimeSplit& pauses);
};

/// One span. Times are CLOCK_MONOTONIC in ns.
struct Span {
  std::uint16_t domain = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  SpanTime time{};
  std::uint64_t pauses = 0;            ///< that began in it
  std::uint64_t longest_pause_ns = 0;  ///< of these
  std::uint64_t paused_ns = 0;         ///< in these
  std::vector<SeenStack> stacks{};     ///< of the domain's thread, if stacks are sampled

  std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

/// The spans of a name of a process.
struct SpanGroup {
  std::int32_t pid = 0;
  std::string comm{}, name{};  ///< as the process made them: escape them
  Histogram wall{};
  SpanTime time{};
  std::uint64_t below_min = 0;
  std::uint64_t unfinished = 0;  ///< of unknown length: words were lost, their domain ended, or its clock went back
  std::vector<Span> slowest{};   ///< slowest first
};

struct SpansReport {
  std::string version{};                   ///< of rtev-bpf
  std::uint64_t run_ns = 0;                ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;       ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0, end_ns = 0;  ///< of what is reported
  bool truncated = false;                  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  ReadPrograms read_programs{};
  std::vector<Lack> lacks{};        ///< of the run
  std::string pattern{};            ///< that the names match
  std::uint64_t min_ns = 0;         ///< shorter ones are only counted
  std::string input{};              ///< a recording as an argument of a shell; empty: none
  bool full = false;                ///< text: more percentiles, all names, more of the slowest spans
  bool scheduler_seen = false;      ///< else all time is unknown
  LostWords lost{};                 ///< of rings: spans may be missing
  std::vector<SpanGroup> groups{};  ///< the one with most time first
  /// None are known, since they were left out, or nothing was read.
  bool is_unknown() const {
    return groups.empty() && (not_recorded.has(EventKind::user_begin) || read_programs.is_none());
  }
  std::uint64_t ungrouped = 0;             ///< spans there was no room for
  std::vector<std::string> other_names{};  ///< of spans that did not match, some
  const StackTable* stacks = nullptr;      ///< of the samples; null if there were no events
};

/// For people, on one screen unless report.full.
std::string spans_text(const SpansReport& report);
/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string spans_json(const SpansReport& report);

}  // namespace rtev
