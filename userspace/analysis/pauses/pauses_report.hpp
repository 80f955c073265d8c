// SPDX-License-Identifier: MIT
// The report of `rtev-bpf pauses` as data, as text and as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/own_share.hpp"
#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/cause_groups.hpp"
#include "analysis/pauses/pause_details.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/utilization/mutator_utilization.hpp"
#include "base/text_buffer.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"

namespace rtev {

/// A pause of unknown length.
struct UnfinishedPause {
  DomainLife domain{};
  std::string comm{};  ///< as the process made it
  std::uint16_t root = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t until_ns = 0;  ///< it lasted till then at the most; at least, if it was cut by an end
  Unfinished reason = Unfinished::lost;
};

struct PausesReport {
  struct Counts {
    std::uint64_t pauses = 0;  ///< all that ended
    std::uint64_t long_enough = 0;
    std::uint64_t total_ns = 0, unknown_ns = 0;  ///< of these: all their time, and of it what is not known
    std::uint64_t represented = 0;               ///< of these: shown in the sections of `worst`, and not there
    std::array<std::uint64_t, unfinished_count> unfinished{};
    std::uint64_t ends_without_begin = 0;
    std::uint64_t ignored_events = 0;  ///< begins of phases of domains beyond what can be followed at once
    std::uint64_t lost_words = 0;
    std::uint64_t unprobed = 0;  ///< gaps in which a program without a ring was not probed, of unknown size
    std::uint64_t rings_missed = 0;
    std::uint64_t words_before = 0;              ///< a ring overwrote them before it was read
    std::uint64_t scheduler_dropped = 0;         ///< events that the kernel's buffers had no room for
    std::uint64_t scheduler_contradictions = 0;  ///< switches that contradict the ones before: others are missing
    bool scheduler_seen = false;
    bool all_switches_seen = false;  ///< also those between threads that are not OCaml's

    SwitchesSeen switches_seen() const {
      if (!scheduler_seen) return SwitchesSeen::none;
      return all_switches_seen ? SwitchesSeen::all : SwitchesSeen::ocaml;
    }
  };

  std::string version;                     ///< of rtev-bpf
  std::uint64_t run_ns = 0;                ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;       ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0, end_ns = 0;  ///< of what is reported
  bool truncated = false;                  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  std::uint64_t min_ns = 0;
  std::size_t top = 0;
  bool full = false;                   ///< text with all details
  bool longest_only = false;           ///< else short text with the worst of each group
  std::size_t max_groups = 5;          ///< of short text
  std::size_t max_worst = SIZE_MAX;    ///< of these, also if there is room for more
  const StackTable* stacks = nullptr;  ///< of the samples; set by whoever makes a report
  std::string input{};                 ///< a recording as an argument of a shell; empty: none
  Counts counts{};
  std::vector<Lack> lacks{};  ///< of the run
  OwnFigures own{};
  bool several_processes = false;  ///< had pauses
  ReadPrograms read_programs{};
  /// Others may be missing.
  bool lower_bound() const {
    return lacks_events(lacks) || counts.words_before > 0 || counts.lost_words > 0 || counts.unprobed > 0 ||
           counts.ignored_events > 0 || counts.unfinished[static_cast<std::size_t>(Unfinished::no_end)] > 0;
  }
  /// Pauses are not counted, since their phases were left out, or nothing was read.
  bool is_unknown() const { return counts.pauses == 0 && (not_recorded.lacks_pauses() || read_programs.is_none()); }
  std::vector<WindowUtilization> utilization{};
  LongPauses long_pauses{};                   ///< by cause
  std::vector<const PauseDetails*> worst{};   ///< longest first
  std::vector<UnfinishedPause> unfinished{};  ///< those that may be longest first
};

/// For people: what long pauses have in common, and the worst of each kind, on one screen; the longest with all details
/// if report.full. Ends with a newline.
std::string report_text(const PausesReport& report);

/// Of `pauses --full`: what the thread of a pause did, its phases and its stop-the-world sections.
void add_details(TextBuffer& out, const PauseDetails& pause, std::uint64_t start_ns, const StackTable& stacks);

/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string report_json(const PausesReport& report);

}  // namespace rtev
