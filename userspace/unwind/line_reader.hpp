// SPDX-License-Identifier: MIT
// Reads .debug_line, in which compilers and assemblers say which line of the source each instruction is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwind/cfi_compiler.hpp"
#include "unwind/string_pool.hpp"
#include "unwind/work_budget.hpp"

namespace rtev {

/// The fields are parts of the object tables (object_tables_format::Part).
struct LineTables {
  std::vector<std::uint32_t> begins;
  std::vector<std::uint32_t> offsets;
  std::vector<std::byte> rows;
};

/// Where the tables are. Versions 2 to 5 of DWARF are read.
struct LineSource {
  std::span<const std::byte> lines;      ///< .debug_line
  std::span<const std::byte> names;      ///< .debug_line_str
  std::span<const AddressRange> code{};  ///< executable segments
  std::uint64_t link_base = 0;
};

/// Any bytes will do; what is implausible is left out. Memory is a small multiple of their size. Empty if the budget
/// does not suffice.
LineTables read_lines(const LineSource& source, StringPool& strings, WorkBudget& budget);

}  // namespace rtev
