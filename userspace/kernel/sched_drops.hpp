// SPDX-License-Identifier: MIT
// When the kernel side had no room for scheduler records, and how many it dropped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bpf/records.h"

namespace rtev::kernel {

/// Records of one cpu that were dropped. All of them lie between the two times, which are of CLOCK_MONOTONIC.
struct SchedDrop {
  std::uint32_t cpu;
  std::uint64_t switches;
  std::uint64_t wakeups;
  std::uint64_t first_ns;
  std::uint64_t last_ns;

  bool operator==(const SchedDrop&) const = default;
};

/// Takes note of drops in memory that is shared with the BPF programs. One thread.
class SchedDropCounters {
 public:
  /// What the cpus dropped since the last call: one for each that did. Call it with the present: what was dropped
  /// before is told for sure.
  std::vector<SchedDrop> take(std::span<rtev_sched_drops> cpus, std::uint64_t now_ns);

  /// All that take() has told.
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
