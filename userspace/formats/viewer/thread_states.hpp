// SPDX-License-Identifier: MIT
// What each thread does from when to when, for formats that want intervals instead of switches.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "formats/viewer/trace_writer.hpp"

namespace rtev {

/// Something a thread did without a break.
struct ThreadInterval {
  const Track* track;
  std::string_view state;       ///< as Linux tools write it: "Running", "R", "R+" (preempted), "S", "D", "T", "t", "I"
  std::uint64_t from, to;       ///< ns; to is greater
  std::uint32_t cpu;            ///< where it runs, or ran last
  std::optional<Thread> other;  ///< who woke the thread ("R") or took its cpu ("R+")
};

/// A fold over switches and wakeups that yields each interval at its end. Intervals of a thread do not overlap; there
/// are gaps where it is not known what the thread did: after a switch that was not seen, and for threads that are not
/// traced, of which only their turns between traced ones are seen. Time must not go back. One thread.
class ThreadStates {
 public:
  using Ended = std::optional<ThreadInterval>;

  Ended leave(std::uint64_t time, const SchedSwitch& change, const Track& prev);
  Ended enter(std::uint64_t time, const SchedSwitch& change, const Track& next);
  Ended wake(std::uint64_t time, const Wakeup& wakeup, const Track& woken);
  /// It left its cpu, and nothing more is known.
  Ended vanish(std::uint64_t time, const Track& track);
  /// The track is about to go.
  void forget(const Track& track) { now_.erase(track.id); }

  /// Ends everything.
  template <typename Take>
  void finish(std::uint64_t time, Take&& take) {
    for (const auto& [id, state] : now_) {
      if (const Ended ended = until(time, state)) take(*ended);
    }
    now_.clear();
  }

 private:
  struct State {
    const Track* track;
    std::string_view name;
    std::uint64_t since;
    std::uint32_t cpu;
    std::optional<Thread> other;
  };

  static Ended until(std::uint64_t time, const State& state);
  Ended become(std::uint64_t time, const State& next);

  std::unordered_map<std::uint32_t, State> now_;  ///< by track id
};

}  // namespace rtev
