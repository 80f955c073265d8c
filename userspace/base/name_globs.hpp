// SPDX-License-Identifier: MIT
// What `-n GLOB` matches, in all commands.
#pragma once

#include <string>
#include <vector>

namespace rtev {

/// True if a glob of -n matches a process with this comm: the name that the kernel has of its main thread, and that ps
/// and top show. It is the file name of the program unless the program sets another one, and is cut after 15 bytes. The
/// glob is one of the shell (`*`, `?`, `[a-z]`, `\` before a character that is meant as it is), and has to match the
/// whole comm, upper and lower case as they are.
bool matches_name(const std::string& glob, const std::string& comm);

/// True if -n selects a process: one of the globs matches it, or there is none.
bool selects_name(const std::vector<std::string>& globs, const std::string& comm);

}  // namespace rtev
