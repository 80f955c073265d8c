// SPDX-License-Identifier: MIT
// The report of `rtev-bpf stats` as data, as text and as JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/stats/allocators.hpp"
#include "analysis/stats/stats_figures.hpp"
#include "analysis/stats/trend.hpp"
#include "analysis/utilization/mutator_utilization.hpp"
#include "rtev/event.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"
#include "stream/program_key.hpp"

namespace rtev {

/// A domain from its spawn to its end.
struct DomainStats {
  std::uint16_t domain = 0;
  std::uint32_t incarnation = 0;  ///< from 1: counts the domains that had this number
  bool ended = false;
  std::uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC, when it was first seen
  StatsFigures figures;
};

struct UserEventStats {
  std::uint16_t id = 0;
  std::string name;         ///< as the program made it; may be empty
  bool of_library = false;  ///< it is a span of a library, with the name of the span instead of that of the event
  std::uint64_t count = 0;
  Histogram durations{};  ///< of its spans, if it is one: of those whose begin and end were seen
};

/// The ends of the major cycles of a process.
struct MajorCycles {
  std::uint64_t count = 0;  ///< that were seen
  std::uint64_t last_ns = 0;
  std::uint64_t longest_gap_ns = 0;      ///< between two of them
  std::uint64_t heap_words_at_last = 0;  ///< size of the heap then; 0: unknown

  void add(std::uint64_t time_ns, std::uint64_t heap_words);
  /// They came regularly, and come no more, although the heap has at least doubled since.
  bool have_stopped(std::uint64_t now_ns, std::uint64_t heap_words) const;
  /// So many tell whether they come regularly.
  static constexpr std::uint64_t least_count = 4;
};

/// A process image. Strings are whatever the process made them.
struct ProcessStats {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< ProcessInfo::start_ticks
  std::string comm;
  std::string exe;
  std::string runtime;
  std::string version;  ///< of OCaml; may be empty
  Family family = Family::since_5_3;
  bool ended = false;
  EventsRead events = EventsRead::off;
  std::uint64_t begin_ns = 0;
  std::optional<std::uint64_t> max_rss_bytes;
  /// Since when its switches were seen: after an exec, since its ring was made or since the first of them. Cpu time
  /// that it used before is in no figure.
  std::optional<std::uint64_t> cpu_since_ns;
  StatsFigures figures;
  Trend heap_words{};  ///< of the major heap; empty where the runtime does not report it
  Trend live_words{};  ///< of it after each major cycle
  MajorCycles cycles;
  std::uint64_t end_ns = 0;              ///< of what was seen of it
  std::vector<DomainStats> domains;      ///< by number and incarnation
  std::uint64_t other_domain_count = 0;  ///< that are not remembered one by one
  StatsFigures other_domains;
  /// Blocks by size as in EventKind::alloc; nothing from programs without the instrumented runtime.
  std::optional<std::array<std::uint64_t, alloc_bucket_count>> alloc_buckets;
  std::vector<UserEventStats> user_events;  ///< most frequent first
  std::uint64_t other_user_events = 0;      ///< of ids that are not remembered one by one

  std::uint64_t domain_count() const { return domains.size() + other_domain_count; }
  /// From the end of the last major cycle to that of what was seen; nothing without a cycle.
  std::optional<std::uint64_t> since_cycle_ns() const {
    return cycles.count > 0 ? std::optional(end_ns - std::min(end_ns, cycles.last_ns)) : std::nullopt;
  }
  /// Nothing where too few were seen, or others may be missing, or the size of the heap is unknown.
  std::optional<bool> cycles_stopped() const {
    const bool is_known = cycles.count >= MajorCycles::least_count && cycles.heap_words_at_last > 0 &&
                          !figures.phases_bound() && !figures.counters_bound();
    return is_known ? std::optional(cycles.have_stopped(end_ns, heap_words.last())) : std::nullopt;
  }
  /// It ended without any event, as children do that run another program.
  bool did_nothing() const { return ended && domain_count() == 0; }
  /// A notable part of its cpu time may be missing.
  bool lacks_cpu_time() const {
    const std::uint64_t unseen = cpu_since_ns.value_or(begin_ns) - std::min(cpu_since_ns.value_or(begin_ns), begin_ns);
    return unseen > figures.cpu_ns.value_or(0) / 100;
  }
};

/// Processes of one program together, without those that did nothing.
struct ProgramStats {
  std::string key;   ///< see program_key(); empty: programs beyond those that are told apart
  std::string comm;  ///< of the first of them
  std::string exe;
  std::uint64_t processes = 0;
  std::uint64_t unlisted = 0;  ///< of them: among StatsReport::other_process_count
  std::uint64_t domains = 0;
  std::uint64_t rising = 0;                     ///< whose heap rises all the time
  std::uint64_t watched = 0;                    ///< whose heap was seen for long enough to tell
  std::optional<std::uint64_t> max_heap_words;  ///< of the heaps that they had last, the largest
  std::optional<std::uint64_t> max_rss_bytes;
  StatsFigures figures;  ///< sums; wall_ns, too
  StatsFigures unlisted_figures;

  void add(const ProcessStats& process);
};

struct StatsReport {
  std::string version;                ///< of rtev-bpf
  std::uint64_t run_ns = 0;           ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;  ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  bool truncated = false;  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  std::vector<ProcessStats> processes{};  ///< those with most GC time first
  std::uint64_t other_process_count = 0;  ///< that ended and are not remembered one by one
  std::uint64_t other_did_nothing = 0;    ///< of them: as ProcessStats::did_nothing()
  StatsFigures other_processes;
  std::vector<ProgramStats> programs{};  ///< of all processes; those with most GC time first
  bool by_process = false;               ///< texts have a row for each process, also where one program has many
  StatsFigures total;                    ///< of all processes; domain_ns sums up, wall_ns is how long was watched
  std::uint64_t process_count = 0;       ///< as they are listed: one is listed once for each program that it ran
  std::uint64_t replaced = 0;            ///< of them: ended by an exec, so that the process is listed again
  std::uint64_t distinct_processes() const { return process_count - std::min(replaced, process_count); }
  ReadPrograms read_programs{};
  /// Nothing if there may have been others, whose events were not recorded.
  std::optional<std::uint64_t> known_process_count() const {
    return known_count(distinct_processes(), not_recorded.has(EventKind::process));
  }
  bool scheduler_seen = false;
  /// Switches that the kernel could not hand over: CPU times are not exact if there are any.
  std::uint64_t switches_dropped = 0;
  std::vector<WindowUtilization> utilization{};
  std::vector<Allocator> allocators{};  ///< of all processes, if allocations were sampled
  std::uint64_t rings_missed = 0;       ///< that processes created and that were not read to their end
  std::vector<Lack> lacks{};            ///< of the run
  std::uint64_t scheduler_gaps() const {
    const auto gaps = std::ranges::find(lacks, Lack::Of::scheduler_gaps, &Lack::of);
    return gaps != lacks.end() ? gaps->count : 0;
  }
  std::uint64_t ignored_events = 0;  ///< begins of phases of domains beyond what can be followed at once

  /// Texts have one row for all processes of the program.
  bool has_one_row(const ProgramStats& program) const {
    return !by_process && !program.key.empty() && program.processes > max_single_processes;
  }
  /// The keys of such programs.
  std::unordered_set<std::string> programs_of_one_row() const;
};

/// For people: sentences, and a table with a row for each process, or program with many of them, or for each domain of
/// the only process, of those with most GC time. It fits a terminal. `full`: a section for each process instead. Its
/// length is bounded. `gc_tuning`: what the figures say about OCAMLRUNPARAM, in place of the table. Processes that did
/// nothing are left out, unless all are such.
std::string stats_text(StatsReport report, bool full, bool gc_tuning = false);

/// The sentences alone.
std::string stats_sentences(StatsReport report);

/// One JSON object, schema 1, in one line. docs/json.md documents the schema.
std::string stats_json(const StatsReport& report, bool gc_tuning = false);

}  // namespace rtev
