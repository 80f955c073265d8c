// SPDX-License-Identifier: MIT
// Which process the worker works on, in memory that it shares with its supervisor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "rtev/error.hpp"

namespace rtev::enable {

class Progress {
 public:
  static Result<Progress> create();

  struct Work {
    std::int32_t pid = 0;  ///< 0: none
    std::uint64_t since_ns = 0;
  };
  Work current() const;
  void reset() { set(0); }

  /// As long as it exists, the worker works on this process; 0: it may wait for as long as it likes.
  class Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { progress_.set(outer_pid_); }

   private:
    friend class Progress;
    Scope(const Progress& progress, std::int32_t pid) : progress_(progress), outer_pid_(progress.current().pid) {
      progress_.set(pid);
    }
    const Progress& progress_;
    std::int32_t outer_pid_;
  };
  Scope work_on(std::int32_t pid) const { return {*this, pid}; }

 private:
  struct Shared {
    std::atomic<std::uint64_t> since_ns;
    std::atomic<std::int32_t> pid;
  };
  struct Unmap {
    void operator()(Shared* shared) const;
  };
  explicit Progress(Shared* shared) : shared_(shared) {}
  void set(std::int32_t pid) const;

  std::unique_ptr<Shared, Unmap> shared_;
};

}  // namespace rtev::enable
