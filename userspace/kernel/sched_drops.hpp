// SPDX-License-Identifier: MIT
// Counts the scheduler records that BPF dropped because a buffer was full, and when.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bpf/records.h"
#include "kernel/kernel_source.hpp"

namespace rtev::kernel {

/// Reads the counters that the BPF programs keep in shared memory. One thread.
class SchedDropCounters {
 public:
  /// What was dropped since the last call, one entry for each cpu that dropped any. `now_ns` is the current time
  /// (CLOCK_MONOTONIC): everything dropped before it is included.
  std::vector<SchedDrop> take(std::span<rtev_sched_drops> cpus, std::uint64_t now_ns);

  /// Sums of what take() returned.
  std::uint64_t switches() const { return switches_; }
  std::uint64_t wakeups() const { return wakeups_; }

 private:
  struct Taken {
    std::uint64_t switches = 0;
    std::uint64_t wakeups = 0;
  };
  std::vector<Taken> taken_;  ///< by cpu
  std::uint64_t last_call_ns_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t wakeups_ = 0;
};

}  // namespace rtev::kernel
