// SPDX-License-Identifier: MIT
// What `-n GLOB` matches, in all commands.
#pragma once

#include <string>
#include <vector>

#include "base/program_names.hpp"

namespace rtev {

/// True if a glob of -n matches a process by one of its names: the comm, the name of the program's file, or that of its
/// bytecode. The glob is one of the shell (`*`, `?`, `[a-z]`, `\` before a character that is meant as it is), and has
/// to match a whole name, upper and lower case as they are. With directories it matches what has these directories in
/// its path, others may be between them: "one/main.exe" matches /home/a/one/bin/main.exe. A glob that begins with a
/// slash has to match the whole path.
bool matches_name(const std::string& glob, const ProgramNames& names);

/// True if -n selects a process: one of the globs matches it, or there is none.
bool selects_name(const std::vector<std::string>& globs, const ProgramNames& names);

/// The same as far as the names are known before the arguments of a process are read, which may take long.
bool may_select_name(const std::vector<std::string>& globs, const ProgramNames& names);

}  // namespace rtev
