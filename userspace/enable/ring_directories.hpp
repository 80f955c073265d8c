// SPDX-License-Identifier: MIT
// Directories that the runtime of a running program can be led to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "enable/target.hpp"

namespace rtev::enable {

/// Absolute paths that may hold any bytes: of variables that the program was started with, HOME first.
std::vector<std::string> ring_directories(const Target& target);

/// Room for the path of such a directory in the memory of the process, with the zero behind it, in bytes. Nothing that
/// the program writes by itself is there: in its environment it may write what others send it (setproctitle(3)).
std::size_t room_for_directory(const Target& target);
/// Has the runtime make its ring, and those of the program's children, in this directory, by its path in that room.
/// False if its variable names another directory by now, or something cannot be written.
bool lead_to_directory(const Target& target, const std::string& path);

}  // namespace rtev::enable
