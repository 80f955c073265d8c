// SPDX-License-Identifier: MIT
// The report of `rtev-bpf stalls`: threads that did not return to their event loop for long, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/sample_history.hpp"
#include "analysis/spans/spans_report.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"
#include "stream/records.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// Threads of one name that had the cpu which another thread waited for.
struct Competitor {
  Thread thread{};  ///< one of them
  std::uint64_t ns = 0;
};

/// A long turn of an event loop: from the end of one wait for events to the begin of the next. Times are
/// CLOCK_MONOTONIC in ns.
struct Stall {
  std::int32_t pid = 0, tid = 0;
  std::int32_t domain = -1;  ///< -1: unknown
  std::uint64_t begin_ns = 0, end_ns = 0;
  bool has_returned = true;  ///< false: it went on when tracing ended, at `end_ns`
  SpanTime time{};
  bool knows_pauses = true;               ///< false: GC phases are missing, and time in the GC counts as code
  Syscall blocked_in = Syscall::unknown;  ///< the system call in which it was blocked longest, outside of the GC
  std::uint64_t blocked_in_ns = 0;
  std::vector<SeenStack> stacks{};     ///< of the thread, if stacks are sampled
  std::optional<Competitor> behind{};  ///< who had the cpu longest, as far as switches of others were seen
  std::string task{};                  ///< TaskName of the task that ran for half of the stall or more; empty: none
  std::string span{};  ///< the user span that was open for half of the stall or more, as the process named it; or empty

  std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

/// The event loops of a process.
struct LoopProgram {
  std::int32_t pid = 0;
  std::string comm{};               ///< as the process made it: escape it
  Syscall call = Syscall::unknown;  ///< in which a loop waits; of several loops that of the last one
  std::uint64_t threads = 0;        ///< that had a loop
  Histogram turns{};                ///< of known length
  std::uint64_t unknown_turns = 0;  ///< of unknown length
  Histogram lengths{};              ///< of stalls
  std::vector<Stall> stalls{};      ///< longest first
};

struct StallsReport {
  std::string version{};                   ///< of rtev-bpf
  std::uint64_t run_ns = 0;                ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;       ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0, end_ns = 0;  ///< of what is reported
  bool truncated = false;                  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  ReadPrograms read_programs{};
  std::vector<Lack> lacks{};             ///< of the run
  std::uint64_t min_ns = 0;              ///< shorter turns are no stalls
  std::size_t top = 0;                   ///< of text: the most stalls that it lists; 0: up to ten, on one screen
  bool full = false;                     ///< text with all that is known of each stall
  std::uint64_t sample_interval_ns = 0;  ///< main threads were looked at that often instead; 0: they were not
  std::string input{};                   ///< a recording as an argument of a shell; empty: none
  bool scheduler_seen = false;           ///< else there are no programs
  bool syscalls_seen = false;            ///< else any sleep counts as a wait for events
  LostWords lost{};                      ///< of rings: time in the GC, spans and tasks may be missing
  std::uint64_t scheduler_dropped = 0;   ///< events that the kernel's buffers had no room for
  std::uint64_t unknown_ns = 0;          ///< of `turns_ns`: what threads did
  std::uint64_t turns_ns = 0;            ///< all turns
  std::uint64_t not_followed = 0;        ///< threads with a loop there was no room for
  std::vector<LoopProgram> programs{};   ///< the one with the longest stall first
  const StackTable* stacks = nullptr;    ///< of the samples; null if there were no events

  /// Nothing is known of loops, since switches were left out, or there were none.
  bool is_unknown() const { return programs.empty() && (not_recorded.has(EventKind::sched_switch) || !scheduler_seen); }
};

/// "190ms on CPU (no GC), 12.0ms without a CPU, in \"rebuild\"": what the thread did, most of it first. Names are
/// escaped. Unless `full` it has the two greatest parts, and no long names. With sampled stacks it says where the
/// thread was in the greatest part.
std::string stall_activity(const Stall& stall, const StackTable* stacks, bool full);

/// For people, on one screen unless report.full.
std::string stalls_text(const StallsReport& report);
/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string stalls_json(const StallsReport& report);

}  // namespace rtev
