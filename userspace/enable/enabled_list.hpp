// SPDX-License-Identifier: MIT
// Which programs had their events switched on by rtev-bpf: on disk, for later runs and for `ps`.
#pragma once

#include <cstdint>

#include "inspect/procfs.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

inline constexpr const char* enabled_directory = "/run/rtev-bpf/enabled";

/// Needs root. `start_ticks` is field 22 of /proc/PID/stat.
Result<void> note_enabled(std::int32_t pid, std::uint64_t start_ticks);
/// False once the process runs another program.
bool was_enabled(std::int32_t pid, std::uint64_t start_ticks);
/// Removes the entries of processes that have ended.
void forget_ended(const Procfs& procfs);

}  // namespace rtev::enable
