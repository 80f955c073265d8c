// SPDX-License-Identifier: MIT
// The fields of /proc/PID/stat that are needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace rtev {

/// The parts of /proc/PID/stat that are needed.
struct ProcessStat {
  std::string comm;  ///< may hold any byte, also ") ("
  char state = '?';
  std::int32_t parent = 0;
  bool kernel_thread = false;     ///< has neither a program nor memory of its own
  bool ending = false;            ///< its main thread has ended, or is about to; it may have others
  std::uint64_t threads = 0;      ///< those that are not yet gone, the main thread among them until all are
  std::uint64_t start_ticks = 0;  ///< field 22, ticks of CLOCK_BOOTTIME: with the pid, the identity of a process
};

/// Reads the stat file of a process, or that of a thread. Nothing if it is gone.
std::optional<ProcessStat> read_stat(const std::filesystem::path& path);

}  // namespace rtev
