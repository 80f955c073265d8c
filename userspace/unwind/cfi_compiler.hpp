// SPDX-License-Identifier: MIT
// Turns a program's .eh_frame, which the tables of exceptions and unwinding are in, into rows that are quick to search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwind/object_tables_format.hpp"
#include "unwind/work_budget.hpp"

namespace rtev {

/// Link-time addresses [begin, end).
struct AddressRange {
  std::uint64_t begin = 0, end = 0;
  bool contains(std::uint64_t address) const { return address >= begin && address < end; }
};

/// How to unwind the code of a file. The fields are parts of the object tables (object_tables_format::Part).
struct CfiTables {
  std::vector<std::uint32_t> row_begins;
  std::vector<std::uint16_t> row_rules;
  std::vector<std::uint32_t> rule_offsets;
  std::vector<std::byte> rules;
  std::vector<std::byte> expressions;
};

/// Where .eh_frame is and what it is about.
struct EhFrame {
  std::span<const std::byte> bytes;
  std::uint64_t address = 0;  ///< link-time address of the bytes
  std::uint64_t link_base = 0;
  std::uint16_t machine = 0;
  std::span<const AddressRange> code;  ///< executable segments
  /// Code that only jumps on: it leaves the stack as it is. Used where the bytes say nothing of it.
  std::span<const AddressRange> jumps{};
};

/// Any bytes will do: code of which the bytes say nothing, nothing known, or different things at once, has no rule.
/// Memory is a small multiple of their size. Empty if the budget does not suffice.
CfiTables compile_cfi(const EhFrame& frame, WorkBudget& budget);

}  // namespace rtev
