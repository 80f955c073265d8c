// SPDX-License-Identifier: MIT
// The figures of `latency`: a distribution of pauses with what is missing in it, and the report.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/own_share.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/utilization/mutator_utilization.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// A superset of what `olly latency` prints.
inline constexpr std::array latency_percentiles{25.0,  50.0,   60.0,   70.0,    75.0,    80.0, 85.0, 90.0,
                                                95.0,  96.0,   97.0,   98.0,    99.0,    99.5, 99.9, 99.95,
                                                99.99, 99.995, 99.999, 99.9995, 99.9999, 100.0};

/// Pauses (or spans of a phase) of a domain, of several, of all.
struct LatencyFigures {
  Histogram wall;
  /// Of those whose time could be split without remainder.
  Histogram on_cpu, runnable, blocked;
  TimeSplit split;                     ///< sums over all; split.total() == wall.total()
  std::uint64_t longest_begin_ns = 0;  ///< of the first one that lasted wall.max(), CLOCK_MONOTONIC
  std::uint64_t below_min = 0;
  std::array<std::uint64_t, unfinished_count> unfinished{};  ///< by Unfinished: in no other figure
  std::uint64_t lost_words = 0;
  std::uint64_t unprobed = 0;  ///< gaps in which a program without a ring was not probed, of unknown size

  void record(std::uint64_t begin_ns, std::uint64_t wall_ns, const TimeSplit& time);
  void merge(const LatencyFigures& other);
  std::uint64_t unfinished_total() const;
  /// Of the histograms, in bytes.
  std::size_t memory_bytes() const {
    return wall.memory_bytes() + on_cpu.memory_bytes() + runnable.memory_bytes() + blocked.memory_bytes();
  }
  /// True if figures may be too low because data are missing. Spans that the end of a program cut off do not count.
  bool lower_bound() const;
  bool empty() const {
    return wall.count() == 0 && below_min == 0 && lost_words == 0 && unprobed == 0 && unfinished_total() == 0;
  }
};

struct LatencyReport {
  struct Domain {
    std::uint16_t domain = 0;
    std::uint32_t incarnations = 0;  ///< domains that had this number
    LatencyFigures figures{};
  };
  struct Process {
    ProcessIndex index = 0;
    std::int32_t pid = 0;
    std::string comm{}, exe{};  ///< as the process made them: escape them
    bool ended = false;
    bool lacks_rings = false;  ///< some were not read to their end
    LatencyFigures figures{};
    std::vector<Domain> domains{};  ///< by number
  };

  enum class Span : std::uint8_t {
    interval,  ///< the last one
    so_far,    ///< from the start to the end of the last interval
    run,       ///< the whole
  };
  Span span = Span::run;
  PauseRule rule = PauseRule::outermost;
  std::string phase{};  ///< empty: pauses
  std::uint64_t min_ns = 0;
  std::string version{};                   ///< of rtev-bpf
  std::uint64_t run_ns = 0;                ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;       ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0, end_ns = 0;  ///< of what is reported
  bool truncated = false;                  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  bool scheduler_seen = false;          ///< else all time is unknown
  bool by_process = false;              ///< text has a row for each process, also where a program has many
  std::uint64_t scheduler_dropped = 0;  ///< switches and wakeups
  std::uint64_t rings_missed = 0;       ///< known at the end of a run
  std::vector<Lack> lacks{};            ///< of the run, likewise
  std::uint64_t words_before = 0;       ///< a ring overwrote them before it was read; known at the end
  OwnFigures own{};                     ///< of the whole run
  std::uint64_t ignored_events = 0;     ///< begins of phases of domains beyond what can be followed at once

  LatencyFigures all{};
  std::vector<Process> processes{};  ///< the one with most time first
  std::uint64_t process_count = 0;   ///< also those without pauses
  std::uint64_t other_domains = 0;   ///< that are not listed
  LatencyFigures others{};
  std::vector<WindowUtilization> utilization{};  ///< of the whole run, if it is of pauses

  ReadPrograms read_programs{};

  /// Pauses are not counted, since their phases were left out, or nothing was read.
  bool is_unknown() const {
    const bool is_left_out = phase.empty() ? not_recorded.lacks_pauses() : not_recorded.lacks_phase(phase);
    return all.wall.count() == 0 && (is_left_out || read_programs.is_none());
  }
  bool lower_bound() const {
    return all.lower_bound() || lacks_events(lacks) || words_before > 0 || ignored_events > 0;
  }
};

/// For people: the figures in a sentence, and a table of the processes with most time, or of the domains of the only
/// one. `full`: all percentiles of each process and domain.
std::string latency_text(const LatencyReport& report, bool full);

/// The sentences alone.
std::string latency_sentences(const LatencyReport& report);

/// An interval in lines, one for each process. `with_titles`: after a line with the titles of the columns.
std::string latency_interval_text(const LatencyReport& report, bool with_titles);

/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string latency_json(const LatencyReport& report);

}  // namespace rtev
