// SPDX-License-Identifier: MIT
// What /proc says of a process's rights and limits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rtev::enable {

struct ProcessStatus {
  std::int32_t ns_pid = 0;  ///< in its innermost pid namespace
  uid_t user = 0;           ///< that its file accesses count for, like the groups; as this process sees them
  gid_t group = 0;
  std::vector<gid_t> groups{};
  std::uint64_t capabilities = 0;  ///< effective
  std::int32_t tracer_pid = 0;     ///< of a debugger
  int seccomp = 0;                 ///< 0: no filter
  char state = '?';                ///< 'T', 't': stopped
  std::uint64_t memory_bytes = 0;  ///< VmSize
};
/// Nothing if the process is gone.
std::optional<ProcessStatus> read_status(std::int32_t pid);

/// Soft limits; UINT64_MAX: none.
struct ProcessLimits {
  std::uint64_t file_bytes = UINT64_MAX, address_space = UINT64_MAX, open_files = UINT64_MAX;
};
std::optional<ProcessLimits> read_limits(std::int32_t pid);

/// A variable of the environment that the program was started with.
std::optional<std::string> started_with(std::int32_t pid, std::string_view name);

/// Bytes that the control groups of the process have left; UINT64_MAX: no limit.
std::uint64_t memory_left(std::int32_t pid);

}  // namespace rtev::enable
