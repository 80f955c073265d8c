// SPDX-License-Identifier: MIT
// A directory below /run for what outlives a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// Others may look names up there, but not read it: who reads a directory, into memory that does not answer, locks it
/// for as long as he likes.
inline constexpr mode_t state_directory_mode = 0711;

/// Makes it and its parent, if they are not there. Takes permissions away that `mode` does not have, and gives none. An
/// error if anybody but root could write to it.
Result<UniqueFd> open_state_directory(const std::filesystem::path& directory, mode_t mode = state_directory_mode);

/// The name of a file about a process: its pid and start time (field 22 of /proc/PID/stat).
std::string state_file_name(std::int32_t pid, std::uint64_t start_ticks);

}  // namespace rtev
