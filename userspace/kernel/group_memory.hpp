// SPDX-License-Identifier: MIT
// How much memory control groups have left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace rtev::kernel {

/// Read from the kernel's own counters by a BPF program, in all versions of control groups. Not from files below
/// /sys/fs/cgroup: any user can lock a directory there, so that whoever looks into it waits. One thread.
class GroupMemory {
 public:
  /// Loads the BPF program. If that fails nothing is known of any process.
  GroupMemory();
  GroupMemory(GroupMemory&&) noexcept;
  GroupMemory& operator=(GroupMemory&&) noexcept;
  ~GroupMemory();

  static constexpr std::uint64_t no_limit = UINT64_MAX;

  /// Bytes until the memory control group of a process, or one above it, is full. Nothing if that is not known, or the
  /// process has ended. `start_ticks`: field 22 of /proc/PID/stat.
  std::optional<std::uint64_t> left(pid_t pid, std::uint64_t start_ticks) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
