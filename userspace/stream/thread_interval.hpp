// SPDX-License-Identifier: MIT
// What threads and cpus did from when to when. All times are CLOCK_MONOTONIC in ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_names.hpp"
#include "stream/records.hpp"

namespace rtev {

enum class ThreadState : std::uint8_t {
  unknown,  ///< before its first scheduler event, or where events are missing
  on_cpu,
  runnable,         ///< can run, but another thread has the cpu
  sleeping,         ///< blocked until woken, also by a signal
  uninterruptible,  ///< blocked in the kernel, usually on a disk
  stopped,          ///< blocked otherwise: stopped by a signal or a debugger
};
inline std::string_view to_string(ThreadState state) {
  static constexpr std::string_view names[]{"unknown", "on-cpu", "runnable", "sleeping", "uninterruptible", "stopped"};
  return name_at(names, state);
}

inline bool is_blocked(ThreadState state) {
  return state == ThreadState::sleeping || state == ThreadState::uninterruptible || state == ThreadState::stopped;
}

/// A length of time divided by what a thread did in it, in ns.
struct TimeSplit {
  std::uint64_t on_cpu = 0;
  std::uint64_t runnable = 0;
  std::uint64_t sleeping = 0;
  std::uint64_t uninterruptible = 0;
  std::uint64_t stopped = 0;
  std::uint64_t unknown = 0;

  /// The member for each ThreadState.
  static const std::array<std::uint64_t TimeSplit::*, 6> parts;

  std::uint64_t blocked() const { return sleeping + uninterruptible + stopped; }
  std::uint64_t total() const { return on_cpu + runnable + blocked() + unknown; }
  /// Nothing is known of it, as without scheduler events.
  bool is_unknown() const { return unknown > 0 && unknown == total(); }
  void add(ThreadState state, std::uint64_t ns) { this->*parts[static_cast<std::size_t>(state)] += ns; }
  TimeSplit& operator+=(const TimeSplit& other) {
    for (const auto part : parts) this->*part += other.*part;
    return *this;
  }
  bool operator==(const TimeSplit&) const = default;
};
inline constexpr std::array<std::uint64_t TimeSplit::*, 6> TimeSplit::parts{
    &TimeSplit::unknown,  &TimeSplit::on_cpu,          &TimeSplit::runnable,
    &TimeSplit::sleeping, &TimeSplit::uninterruptible, &TimeSplit::stopped};

/// A time in which a thread was in one state.
struct ThreadInterval {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::int32_t domain = -1;  ///< OCaml domain of the thread, -1 if unknown
  ThreadState state = ThreadState::unknown;
  /// What the scheduler events said when it began. Differs from `state` where a later event contradicts it: the thread
  /// was in this state at first, and it is unknown until when.
  ThreadState first_state = ThreadState::unknown;
  LeftState left = LeftState::other;   ///< blocked: how it left its cpu
  Syscall syscall = Syscall::unknown;  ///< blocked: in which system call
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;  ///< of the present interval: the time of the question
  /// The part of the interval from here on is in ThreadTracker::at() under `state`. What at() has reported of the time
  /// before (begin_ns up to here) it does not take back.
  std::uint64_t accounted_from_ns = 0;
  /// on_cpu: where it runs. Runnable: which cpu it waits for, as far as known; after a wakeup, once it runs, the one
  /// that it got. Otherwise the one that it left, or was on in `first_state`. -1 if unknown.
  std::int32_t cpu = -1;
  std::optional<Thread> preempted_by{};  ///< runnable after a preemption: who got the cpu
  std::optional<Thread> woken_by{};      ///< runnable after a wakeup: who woke it
};

/// The thread on a cpu, as far as the switches seen say.
struct RunningThread {
  Thread thread{};  ///< tid 0: the idle thread
  std::uint64_t begin_ns = 0;
  bool gapless = false;      ///< a switch to another thread would have been seen
  bool left_unseen = false;  ///< it is not on this cpu any more; who is there is unknown
};

/// The time from one switch of a cpu that was seen to the next.
struct CpuInterval {
  std::uint32_t cpu = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  Thread first{};  ///< entered the cpu at the begin
  Thread last{};   ///< left it at the end: another thread if switches between were not seen
  bool gapless = false;
  bool left_unseen = false;  ///< `first` was seen elsewhere before the end
};

}  // namespace rtev
