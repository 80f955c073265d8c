// SPDX-License-Identifier: MIT
// What `rtev-bpf top` shows of one interval of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/read_programs.hpp"
#include "rtev/event.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev::top {

/// What a process did in an interval, or several of one program together. Times in ns. What is not known is left out.
struct ProcessFigures {
  ProcessIndex index = 0;       ///< of several: 0
  std::uint32_t program = 0;    ///< the same for all processes of a program
  std::uint64_t processes = 1;  ///< that these figures are of
  std::int32_t pid = 0;
  std::string comm{};                        ///< any bytes: escape it
  EventsRead events_read = EventsRead::yes;  ///< else what they tell is not known
  /// It has no ring yet, and began so lately that it may still make one: whether its events are off is unknown.
  bool is_starting = false;
  /// What these tell; false also where --events left them out.
  bool knows_phases = true, knows_counters = true, knows_losses = true;
  std::string version{};              ///< of OCaml, likewise
  bool ended = false;                 ///< in this interval
  std::uint64_t interval_ns{};        ///< the time that the figures are of
  std::size_t domains = 0;            ///< that run
  std::optional<double> cpu_share{};  ///< of one CPU, by all of its threads
  std::uint64_t gc_ns = 0, domain_ns = 0;
  double gc_share = 0;                 ///< of the time of its domains: in pauses
  std::optional<double> wait_share{};  ///< time that its threads waited for a CPU, of the time of one
  std::uint64_t pauses = 0;
  std::optional<std::uint64_t> p50_ns{}, p99_ns{};  ///< of fewer pauses than that takes: none
  std::uint64_t worst_ns = 0;                       ///< the longest pause; one that goes on counts as far as it got
  std::uint64_t sections = 0;                       ///< stop-the-world
  std::uint64_t arrival_ns = 0;                     ///< the longest time until all domains had arrived in one
  std::uint64_t minor_collections = 0, major_cycles = 0;
  std::uint64_t allocated_bytes = 0;  ///< in minor heaps, and directly in the major heap as far as that is known
  std::uint64_t minor_words = 0, promoted_words = 0;
  std::optional<double> promoted_share{};     ///< of what was allocated in minor heaps
  std::optional<std::uint64_t> heap_bytes{};  ///< of the major heap, now; of several: of those that run, together
  std::optional<double> live_share{};         ///< of the heap, after the last major cycle; of several: unknown
  std::optional<double> growth{};             ///< of the heap in the last minute, in bytes per second
  std::uint64_t events = 0, lost_words = 0;

  /// What events tell; nothing where none were read.
  std::optional<std::uint64_t> known(std::uint64_t figure) const { return known_count(figure, !has_events()); }
  bool has_events() const { return events_read == EventsRead::yes; }
  bool is_off() const { return events_read == EventsRead::off && !is_starting; }
  /// Which row it is.
  std::uint64_t row() const { return index != 0 ? index : std::uint64_t{program} << 32; }
  /// Adds another process of the program. Not percentiles.
  void add(const ProcessFigures& other);
  /// gc_share and promoted_share, from the sums.
  void set_shares();
  /// Of a count: how many in a second.
  double per_second(std::uint64_t count) const {
    return interval_ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(interval_ns);
  }
};

/// A domain of a process, since its spawn.
struct DomainDetails {
  std::string name{};   ///< its number
  std::string state{};  ///< what it does now: "running", "in a pause for 12.3ms, waits for a CPU"
  std::optional<double> gc_share{};
  std::uint64_t pauses = 0, worst_ns = 0;
};

/// Spans of the program of one name, since the start.
struct SpanDetails {
  std::string name{};
  std::uint64_t count = 0, total_ns = 0, max_ns = 0;
  std::optional<std::uint64_t> p99_ns{};
};

/// What the screen of one process shows besides its figures. Texts are escaped.
struct ProcessDetails {
  ProcessIndex index = 0;
  std::vector<DomainDetails> domains{};
  std::vector<std::string> causes{};  ///< of its long pauses since the start: "12 × waited for domain 1 ... "
  std::string worst{};                ///< a sentence about the longest pause since the start; empty: there was none
  std::vector<std::string> tasks{};   ///< the longest runs of fibers and other tasks since the start, and who waited
  std::vector<SpanDetails> spans{};   ///< those with most time first
  std::size_t other_spans = 0;        ///< names that are not listed
};

/// The figures of all processes in an interval.
struct Interval {
  std::uint64_t time_ns = 0;      ///< its end, CLOCK_MONOTONIC
  std::uint64_t realtime_ns = 0;  ///< the same, CLOCK_REALTIME; 0: unknown
  std::uint64_t elapsed_ns = 0;   ///< since the start of the run
  std::uint64_t length_ns = 0;
  bool is_partial = false;    ///< the stream ended before the interval did
  bool is_truncated = false;  ///< it ended there since the end of the recording is missing: so may be losses
  std::vector<ProcessFigures> processes{};  ///< that run, or ended in the interval, by index
  std::vector<ProcessFigures> programs{};   ///< sums over the processes of programs with more than some, by program
  std::uint64_t events = 0, lost_words = 0;
  bool scheduler_seen = false;            ///< there were scheduler events, now or before
  std::uint64_t dropped = 0;              ///< of them
  std::string worst{};                    ///< a sentence about the longest pause; empty: there was none
  std::vector<ProcessDetails> details{};  ///< of all processes, or nothing

  const ProcessFigures* find(ProcessIndex index) const;
  /// The rows of a table: the programs, and processes of other ones; or the processes of one program; or all processes.
  std::vector<const ProcessFigures*> rows() const;
  std::vector<const ProcessFigures*> rows_of(std::uint32_t program) const;
  std::vector<const ProcessFigures*> single_rows() const;
  const ProcessDetails* details_of(ProcessIndex index) const;
  /// About how much memory it takes.
  std::size_t bytes() const;
};

}  // namespace rtev::top
