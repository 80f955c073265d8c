// SPDX-License-Identifier: MIT
// Which programs had their events switched on by rtev-bpf: on disk, for later runs and for `ps`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/procfs.hpp"
#include "rtev/error.hpp"

namespace rtev {

inline constexpr const char* enabled_directory = "/run/rtev-bpf/enabled";

/// What rtev-bpf did to the events of a program.
enum class Enabled : std::uint8_t {
  never,  ///< nothing, or the process runs another program by now
  on,     ///< it switched them on
  off,    ///< and off again: the runtime takes itself for one without a ring, but still maps it
};

struct EnabledNote {
  Enabled enabled{};
  bool for_a_run = false;         ///< it is on until the run ends that has switched it on
  std::uint64_t since_ticks = 0;  ///< of CLOCK_BOOTTIME, like start times
  std::uint64_t place = 0;        ///< where the program was in memory: tells it from itself after an exec
  std::uint32_t user = 0;         ///< that the program ran as
  std::uint64_t ring_inode = 0;   ///< of its ring's file; 0: unknown
  std::string ring_path{};        ///< as the kernel named it; may hold any bytes
};

/// Needs root, who alone may read the entry: it has addresses of the process. `start_ticks` is field 22 of
/// /proc/PID/stat.
Result<void> note_enabled(std::int32_t pid, std::uint64_t start_ticks, EnabledNote note);
/// Nothing if there is none, or the process runs another program by now.
std::optional<EnabledNote> enabled_note(std::int32_t pid, std::uint64_t start_ticks);
/// Likewise, in one word. Nothing if this process may not read entries.
std::optional<Enabled> enabled_by_us(std::int32_t pid, std::uint64_t start_ticks);
/// What was noted last of any of the programs that the process ran.
std::optional<EnabledNote> last_enabled_note(std::int32_t pid, std::uint64_t start_ticks);
/// Removes the entry of a process that has ended.
void forget_enabled(std::int32_t pid, std::uint64_t start_ticks);

struct NotedProcess {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
};
/// Removes the entries of processes that have ended. Returns those of the others.
std::vector<NotedProcess> forget_ended(const Procfs& procfs);

}  // namespace rtev
