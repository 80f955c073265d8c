// SPDX-License-Identifier: MIT
// What /proc says of a process's rights and limits.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::enable {

/// The parts of /proc/PID/status that are needed.
struct ProcessStatus {
  std::int32_t ns_pid = 0;                   ///< in its innermost pid namespace
  std::array<std::uint32_t, 4> user_ids{};   ///< real, effective, saved, of file accesses
  std::array<std::uint32_t, 4> group_ids{};  ///< likewise
  std::vector<gid_t> groups{};
  std::uint64_t capabilities = 0;            ///< effective
  std::uint64_t permitted_capabilities = 0;  ///< it may make them effective at any time
  std::int32_t tracer_pid = 0;               ///< of a debugger
  int seccomp = 0;                           ///< 0: no filter
  std::uint64_t memory_bytes = 0;            ///< VmSize
  std::uint64_t threads = 0;
};
/// Nothing if the text is cut, or lacks one of these.
std::optional<ProcessStatus> parse_status(std::string_view text);

/// Soft limits; UINT64_MAX: none.
struct ProcessLimits {
  std::uint64_t file_bytes = UINT64_MAX, address_space = UINT64_MAX, open_files = UINT64_MAX;
};
/// Of the text of /proc/PID/limits.
ProcessLimits parse_limits(std::string_view text);

/// A variable in the text of /proc/PID/environ, with which the program was started.
std::optional<std::string> variable_in(std::string_view environment, std::string_view name);

}  // namespace rtev::enable
