// SPDX-License-Identifier: MIT
// Parses a program or library for unwinding and naming its frames. Runs in the helper process: the file is its user's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/change_check.hpp"
#include "rtev/error.hpp"
#include "unwind/work_budget.hpp"

namespace rtev {

/// The object tables of an open ELF file (see object_tables.hpp). Parts that the file does not have, or that make no
/// sense, are empty. Fails if it is no ELF file of this kind of machine, or cannot be read: EAGAIN while it is being
/// changed. Does not move the descriptor's offset.
///
/// Memory is bounded by the size of the file, and by constants. Parts for which `cpu_ns` of CPU time do not suffice are
/// empty (ObjectTables::is_cut). A step that does not look at the clock, such as sorting, takes a few hundred
/// milliseconds at the most.
Result<std::vector<std::byte>> build_object_tables(int fd, const ChangeCheck& check = {},
                                                   std::uint64_t cpu_ns = WorkBudget::unlimited);

}  // namespace rtev
