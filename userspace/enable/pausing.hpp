// SPDX-License-Identifier: MIT
// Pauses the events of many programs at the end of a run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "enable/bounded_task.hpp"
#include "enable/process_memory.hpp"
#include "enable/user_turns.hpp"

namespace rtev::enable {

/// Where a runtime keeps whether its events are on: two words. Addresses are of the process.
struct EventFlags {
  std::uint64_t enabled = 0, paused = 0;
};

/// A program whose events were switched on for the time of a run.
struct PausedAtEnd {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  std::uint32_t user = 0;         ///< charged_user() of the process
  ProcessMemory memory;
  EventFlags flags{};
};

/// Pauses the events of programs at the end of a run, each on a thread of its own: one that does not answer keeps its
/// thread for ever, and must not keep the events of others on. One thread.
class Pauser {
 public:
  /// Of threads that run at a time. A user has half of those that others leave.
  static constexpr std::size_t max_threads = 32;
  /// Starts a thread, as run_detached() does.
  using Start = std::function<bool(std::packaged_task<void()>)>;

  explicit Pauser(Start start = run_detached) : start_(std::move(start)) {}

  /// Pauses those whose events are on: first root's, then those of users in turn, last those of users of whom one does
  /// not answer. Returns those for which there was no time or no thread, and those whose events were never on: they may
  /// yet come on, since a runtime that was asked to start them waits until its other domains stop. Takes a second at
  /// the most.
  std::vector<PausedAtEnd> pause(std::vector<PausedAtEnd> programs);
  /// Whether some have not answered yet: pause() may return them later.
  bool is_waiting() const { return !running_.empty(); }
  /// The same in this thread, in the same order, for when there is no other one. It may wait for ever.
  void pause_here(std::vector<PausedAtEnd> programs) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Waiting = UserTurns<PausedAtEnd>;
  struct Running {
    std::shared_ptr<PausedAtEnd> program;
    std::shared_ptr<std::atomic<bool>> is_off;
    std::future<void> done;
    Clock::time_point start;
  };
  enum class Begun : std::uint8_t { yes, no, without_thread };

  static bool is_silent(const Running& running);
  bool has_silent_of(std::uint32_t user) const;
  bool has_place_for(std::uint32_t user) const;
  std::optional<Waiting::OfUser> take_next(Waiting& waiting, bool needs_place) const;
  Begun begin_next(Waiting& waiting);
  void take_done(std::vector<PausedAtEnd>& off);

  Start start_;
  std::vector<Running> running_;
};

}  // namespace rtev::enable
