// SPDX-License-Identifier: MIT
// Pauses the events of many programs at the end of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "enable/process_memory.hpp"

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

/// Pauses those whose events are on. Returns those for which there was no time, and those whose events were never on:
/// they may yet come on, since a runtime that was asked to start them waits until its other domains stop. Skips
/// programs that do not answer. Takes a second at the most.
std::vector<PausedAtEnd> pause_all(std::vector<PausedAtEnd> programs);

}  // namespace rtev::enable
