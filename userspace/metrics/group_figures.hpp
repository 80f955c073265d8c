// SPDX-License-Identifier: MIT
// What is counted of a group of processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/pause_finder.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/stats/stats_figures.hpp"
#include "analysis/tasks/task_tracker.hpp"
#include "metrics/duration_histogram.hpp"
#include "metrics/phase_family.hpp"
#include "metrics/user_metrics.hpp"
#include "stream/records.hpp"

namespace rtev {

/// What a pause was for: the first of these that has a phase in it.
enum class PauseKind : std::uint8_t {
  explicit_call,  ///< the program called the collector
  major,
  minor,
  stw,  ///< stopped for another domain, without a collection
  other,
};
inline constexpr std::size_t pause_kind_count = 5;
std::string_view to_string(PauseKind kind);

enum class ExitReason : std::uint8_t { exit, signal, exec };
inline constexpr std::size_t exit_reason_count = 3;
std::string_view to_string(ExitReason reason);

inline constexpr std::size_t thread_role_count = 4;       ///< of ThreadRole
inline constexpr std::size_t ring_loss_reason_count = 4;  ///< of LossReason: those whose words are known

/// Sums never fall, also when processes end. Times in ns.
struct GroupFigures {
  /// Events of a process were read, or would have been if it had written any. Else what events tell is unknown.
  bool has_events = false;

  // As of now.
  std::int64_t processes = 0, domains = 0;
  std::array<std::int64_t, events_read_count> processes_by_events{};  ///< by EventsRead
  std::array<std::uint64_t, heap_counter_count> heap{};               ///< as heap_counters(), modulo 2^64
  std::array<bool, heap_counter_count> heap_seen{};

  // Since the start.
  std::uint64_t starts = 0, forks = 0, domain_spawns = 0;
  std::array<std::uint64_t, exit_reason_count> exits{};
  std::array<DurationHistogram, pause_kind_count> pauses{};
  std::array<std::uint64_t, unfinished_count> unfinished{};  ///< pauses of unknown length
  std::array<std::uint64_t, phase_family_count> phase_ns{};  ///< without the phases inside
  std::uint64_t gc_cpu_ns = 0;
  std::uint64_t wait_runnable_ns = 0, wait_blocked_ns = 0, wait_stw_ns = 0;  ///< in pauses
  std::uint64_t minor_collections = 0, major_cycles = 0, major_slices = 0, compactions = 0;
  std::array<std::uint64_t, trigger_counter_count> forced{};         ///< as trigger_counters()
  std::array<std::uint64_t, explicit_phase_count> explicit_calls{};  ///< as explicit_phases()
  std::uint64_t minor_bytes = 0, promoted_bytes = 0, major_words = 0;
  DurationHistogram stw{}, stw_arrival{}, sched_delay{};
  std::array<std::uint64_t, thread_role_count> cpu_ns{};
  /// The same with what threads that are on a CPU have used there. That may be corrected later, but never shown to
  /// fall.
  std::array<std::uint64_t, thread_role_count> shown_cpu_ns{};
  std::uint64_t condition_wait_ns = 0;
  std::array<std::uint64_t, ring_loss_reason_count> lost_words{};
  std::uint64_t probe_gaps = 0;  ///< in which an unknown number of words was lost
  UserFigures user{};
  /// Of the processes that run, by library and state; summed up when metrics are asked for.
  TaskTracker::Counts tasks{};
  std::array<bool, task_library_count> tasks_seen{};  ///< since the start
};

}  // namespace rtev
