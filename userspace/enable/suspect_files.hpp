// SPDX-License-Identifier: MIT
// Programs of which a process came to harm: on disk, so that later runs leave them alone, too.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "rtev/error.hpp"

namespace rtev::enable {

/// The file of a program, or of its runtime: device and inode.
using ProgramFile = std::pair<std::uint64_t, std::uint64_t>;
using SuspectFiles = std::set<ProgramFile>;

/// The entry of a program. Whoever removes it has the program tried again.
std::string suspect_path(const ProgramFile& file);
Result<void> note_suspect(const ProgramFile& file);
/// Those of this run and of earlier ones since the host started.
SuspectFiles read_suspects();

}  // namespace rtev::enable
