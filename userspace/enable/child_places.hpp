// SPDX-License-Identifier: MIT
// How many child processes may hang, for a supervisor and all its workers.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/unique_fd.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// Each child process takes a place before it is forked. One that hangs keeps it until it ends, also when the worker
/// that forked it is killed and another one takes its place: each is a task of this service. The places lie in memory
/// that this process shares with those that it forks. Thread-safe.
class ChildPlaces {
 public:
  static constexpr std::size_t most_of_user = 2, most = 32;  // the agent's unit has 128 tasks
  /// Many users may be one person's: the first child of another user has room beyond that.
  static constexpr std::size_t all = 2 * most;

  ChildPlaces();
  ChildPlaces(const ChildPlaces&) = delete;
  ChildPlaces& operator=(const ChildPlaces&) = delete;
  ~ChildPlaces();

  class Place {
   public:
    Place(Place&& other) noexcept : places_(std::exchange(other.places_, nullptr)), index_(other.index_) {}
    Place& operator=(Place&&) = delete;
    /// Gives it back, unless it is left to a child.
    ~Place();

    /// The child has begun. False if it has ended already.
    bool give(pid_t child) const;
    /// The child hangs.
    void leave();

   private:
    friend class ChildPlaces;
    Place(ChildPlaces& places, std::size_t index) : places_(&places), index_(index) {}
    ChildPlaces* places_;
    std::size_t index_;
  };

  /// Waits, for a moment, for children of other threads that may have an answer soon. Nothing if there is no place.
  std::optional<Place> take(std::uint32_t user);
  /// After the end of a process that shares them: frees the places of children that it has not begun, kills those that
  /// it waited for, and frees the places of those that have ended. Takes a tenth of a second at most.
  void take_over();

 private:
  enum class Use : std::uint8_t {
    none,
    taken,  ///< by a process that is about to start a child, or waits for it
    left,   ///< to a child that hangs
  };
  struct Shared {
    std::atomic<Use> use;
    std::atomic<std::uint32_t> user;
    std::atomic<std::int32_t> pid;  ///< 0: not begun
    std::atomic<std::uint64_t> start_ticks;
  };

  bool claim(std::uint32_t user, std::size_t& index);
  UniqueFd hold(const Shared& place) const;
  void free_ended();
  std::span<Shared> shared() const { return {shared_, all}; }

  Procfs procfs_;
  Shared* shared_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t at_work_ = 0;  ///< places of children for which this process waits
};

}  // namespace rtev::enable
