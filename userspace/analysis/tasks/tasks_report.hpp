// SPDX-License-Identifier: MIT
// The report of `rtev-bpf tasks`: the tasks of programs, how long they run without letting others run, and what they
// wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/sample_history.hpp"
#include "analysis/spans/spans_report.hpp"
#include "analysis/tasks/task_tracker.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// A task that did not run while another one ran. Texts of tasks are as the process made them: escape them.
struct TaskWait {
  Task task{};
  bool certain = false;     ///< it could run; else it was suspended, and resumed right after the run
  std::string operation{};  ///< of a suspended one
  std::uint64_t ns = 0;     ///< of the run
};

/// A time in which a task ran on a domain without letting others run. Times are CLOCK_MONOTONIC in ns.
struct TaskRun {
  Task task{};
  std::uint16_t domain = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  bool goes_on = false;  ///< at the end of the stream
  SpanTime time{};       ///< what the domain did meanwhile
  std::uint64_t pauses = 0, longest_pause_ns = 0;
  std::vector<TaskWait> waits{};    ///< longest first
  std::uint64_t more_waits = 0;     ///< that are not in the list
  std::vector<SeenStack> stacks{};  ///< of the domain's thread, if stacks are sampled

  std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

/// What tasks wait for. The operation that is called `runnable` is that they can run and do not.
struct TaskOperation {
  std::string name{};  ///< as the process made it
  std::uint64_t count = 0, total_ns = 0;
  // The longest one.
  Task task{};
  std::uint64_t longest_ns = 0, longest_begin_ns = 0;
  bool goes_on = false;
};

struct TaskFailure {
  Task task{};
  std::string error{};  ///< as the process made it
  std::uint64_t time_ns = 0;
};

/// The tasks of a process.
struct TaskProgram {
  std::int32_t pid = 0;
  std::string comm{};  ///< as the process made it
  TaskLibrary library{};
  std::uint64_t created = 0, finished = 0, failed = 0, cancelled = 0;
  std::array<std::uint64_t, task_state_count> states{};  ///< at the end of the stream, or of the process
  Histogram runs{};                                      ///< lengths
  TaskOperation runnable{};
  std::vector<TaskOperation> operations{};  ///< the one with the longest suspension first
  std::uint64_t other_operations = 0;       ///< suspensions by further names
  std::vector<TaskRun> longest{};           ///< longest first
  std::vector<TaskFailure> failures{};      ///< some

  std::uint64_t alive() const { return states[0] + states[1] + states[2]; }
};

struct TasksReport {
  std::string version{};                   ///< of rtev-bpf
  std::uint64_t run_ns = 0;                ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;       ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0, end_ns = 0;  ///< of what is reported
  std::uint64_t min_ns = 0;                ///< shorter runs are only counted
  bool full = false;                       ///< text with all runs, waits and operations
  std::string input{};                     ///< a recording as an argument of a shell; empty: none
  bool truncated = false;                  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  ReadPrograms read_programs{};
  std::vector<Lack> lacks{};            ///< of the run
  bool scheduler_seen = false;          ///< else the time of runs is unknown
  LostWords lost{};                     ///< of rings
  std::uint64_t not_followed = 0;       ///< events of tasks, and programs, that there was no room for
  std::vector<TaskProgram> programs{};  ///< the one with the longest run first
  /// None are known, since user events were left out, or nothing was read.
  bool is_unknown() const {
    return programs.empty() && (not_recorded.has(EventKind::user_custom) || read_programs.is_none());
  }
  const StackTable* stacks = nullptr;  ///< of the samples; null if there were no events
};

/// For people, on one screen unless report.full.
std::string tasks_text(const TasksReport& report);
/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string tasks_json(const TasksReport& report);

}  // namespace rtev
