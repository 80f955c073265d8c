// SPDX-License-Identifier: MIT
// The BPF programs that tell when a process runs whose events are to be switched on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "bpf/records.h"
#include "rtev/error.hpp"

namespace rtev::kernel {

/// Whether a record is of the process that began then (field 22 of /proc/PID/stat): its pid may be another one's by
/// now.
inline bool is_of(const rtev_running& record, std::uint64_t start_ticks) {
  return record.start_time / ns_per_tick == start_ticks;
}

/// Reports threads that enter a cpu, that the kernel's tick interrupts, or that die by a signal, of the processes that
/// are wanted; and changes of those that are watched, see watch(). The programs are attached only
/// while there are any of these, since each switch of the host passes them. One thread.
class EnablePrograms {
 public:
  static Result<EnablePrograms> load();
  EnablePrograms(EnablePrograms&&) noexcept;
  EnablePrograms& operator=(EnablePrograms&&) noexcept;
  ~EnablePrograms();

  /// From `not_before_ns` (CLOCK_MONOTONIC) on. May be called again, with another time.
  Result<void> want(pid_t tgid, std::uint64_t not_before_ns);
  void forget(pid_t tgid);
  /// Reports once, at the next switch or tick after that, that the effective user is not this one, that the root
  /// directory or the mount namespace is not the one it has now, that there is a filter of system calls (unless
  /// `may_filter`), or that few more files can be opened.
  Result<void> watch(pid_t tgid, std::uint32_t user, bool may_filter);
  void unwatch(pid_t tgid);

  /// Readable (epoll) when there are records.
  int fd() const;
  void read(const std::function<void(const rtev_running&)>& consumer);

 private:
  struct State;
  Result<void> attach();
  void detach_if_idle();
  explicit EnablePrograms(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
