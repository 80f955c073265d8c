// SPDX-License-Identifier: MIT
// A directory below /run for what outlives a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// Makes it and its parent, if they are not there, for root only: who may read a directory, into memory that does not
/// answer, or may look up names there, for rename(2), can lock it for as long as he likes. Takes the permissions of
/// others away. An error if anybody but root could write to it.
Result<UniqueFd> open_state_directory(const std::filesystem::path& directory);

/// The name of a file about a process: its pid and start time (field 22 of /proc/PID/stat).
std::string state_file_name(std::int32_t pid, std::uint64_t start_ticks);

}  // namespace rtev
