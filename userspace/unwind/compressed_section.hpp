// SPDX-License-Identifier: MIT
// Sections of ELF files that are compressed (SHF_COMPRESSED), as debug information often is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwind/work_budget.hpp"

namespace rtev {

/// What a section was before it was compressed by zlib: the first `limit` bytes, or fewer where its data ends or is
/// broken, or where the budget is used up. Empty if it was compressed in another way. Untrusted: memory follows what
/// is found, not the size that the section claims.
std::vector<std::byte> decompress_section(std::span<const std::byte> section, std::uint64_t limit, WorkBudget& budget);

}  // namespace rtev
