// SPDX-License-Identifier: MIT
// The code that a process maps, with tables for its files. For the helper process: files may hang, and may lie.
#pragma once

#include <cstdint>
#include <vector>

#include "inspect/process_view.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// Executable mappings, in order of addresses. If `builds_tables`, they are built for files that are not `known`, as
/// far as time allows: where neither tables nor `has_none` is set, ask again.
std::vector<MappedCode> look_at_code(const Procfs& procfs, std::int32_t pid, const std::vector<MappedFile>& known,
                                     bool builds_tables = true);

}  // namespace rtev
