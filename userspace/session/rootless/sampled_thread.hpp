// SPDX-License-Identifier: MIT
// Makes scheduler records of what /proc says of a thread now and then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "stream/records.hpp"

namespace rtev {

/// What /proc says of a thread at a time.
struct ThreadSample {
  std::uint64_t time_ns = 0;              ///< CLOCK_MONOTONIC
  std::uint64_t cpu_ns = 0, wait_ns = 0;  ///< since it began: on a CPU, and runnable without one
  std::uint64_t runs = 0;                 ///< how often it got a CPU
  std::uint64_t sleeps = 0;               ///< how often it left its CPU to sleep
  bool has_ended = false;                 ///< the other members say nothing then
  std::optional<LeftState> blocked_as{};  ///< nothing: it runs, or could
  Syscall syscall = Syscall::other;       ///< in which it blocks; unknown: that may not be read
};

/// Reads the text of /proc/PID/task/TID/schedstat. It stays 0 if the kernel does not count.
void parse_schedstat(std::string_view text, ThreadSample& sample);
/// Reads that of .../status. A thread whose text makes no sense counts as ended.
void parse_status(std::string_view text, ThreadSample& sample);
/// Reads that of .../syscall, after parse_status(). Empty: it may not be read.
void parse_syscall(std::string_view text, ThreadSample& sample);

/// One thread. What it did between two samples is inferred: it ran for the time that the kernel counts. Of sleeps that
/// began and ended in between only the number is known. They count as waits for events if the thread has waited for
/// events before, so that no turn of an event loop appears longer than it was; when they were is unknown, and where the
/// thread was active for long between two samples it is divided by them. One thread.
class SampledThread {
 public:
  using Emit = std::function<void(std::uint64_t time_ns, const SchedSwitch& change)>;

  /// `cpu`: a number that stands for the CPUs of this thread, and of no other.
  SampledThread(const Thread& thread, std::uint32_t cpu) : thread_(thread), cpu_(cpu) {}

  /// Emits records in order of time, from the time of the last sample to that of this one.
  void add(const ThreadSample& sample, const Emit& emit);

 private:
  void leave(std::uint64_t time_ns, LeftState state, Syscall syscall, const Emit& emit) const;
  void enter(std::uint64_t time_ns, const Emit& emit) const;
  void block(std::uint64_t time_ns, const ThreadSample& sample, const Emit& emit);
  void add_unseen_sleep(std::uint64_t begin_ns, std::uint64_t end_ns, const Emit& emit) const;

  Thread thread_;
  std::uint32_t cpu_;
  std::optional<ThreadSample> last_{};
  Syscall unseen_in_ = Syscall::other;  ///< where sleeps count that no sample shows
};

}  // namespace rtev
