// SPDX-License-Identifier: MIT
// Which process the worker works on, in memory that it shares with its supervisor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "enable/held_process.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

class Progress {
 public:
  static Result<Progress> create();

  struct Work {
    std::int32_t pid = 0;           ///< 0: none
    std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
    std::uint32_t user = 0;         ///< who is charged
    std::uint64_t since_ns = 0;
  };
  Work current() const;
  void reset() { set({}); }

  /// As long as it exists, the worker works on this process.
  class Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    friend class Progress;
    Scope(const Progress& progress, const Work& work) : progress_(progress), outer_(progress.current()) {
      progress_.set(work);
    }
    const Progress& progress_;
    Work outer_;
  };
  /// `user`: who is charged if the process does not answer. What it is now may be another user's program.
  Scope work_on(std::int32_t pid, std::uint64_t start_ticks, std::uint32_t user) const;
  Scope work_on(const HeldProcess& process) const;
  /// The worker may wait for as long as it likes.
  Scope idle() const { return {*this, Work{}}; }

 private:
  struct Shared {
    std::atomic<std::uint64_t> since_ns, start_ticks;
    std::atomic<std::int32_t> pid;
    std::atomic<std::uint32_t> user;
  };
  struct Unmap {
    void operator()(Shared* shared) const;
  };
  explicit Progress(Shared* shared) : shared_(shared) {}
  void set(const Work& work) const;

  std::unique_ptr<Shared, Unmap> shared_;
};

}  // namespace rtev::enable
