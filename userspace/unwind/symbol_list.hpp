// SPDX-License-Identifier: MIT
// The functions of a file, and the few symbols that say where OCaml's tables and the runtime's special code are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/elf_file.hpp"
#include "unwind/cfi_compiler.hpp"
#include "unwind/object_tables_format.hpp"
#include "unwind/string_pool.hpp"
#include "unwind/work_budget.hpp"

namespace rtev {

/// Addresses of extents count from the link base.
struct SymbolList {
  std::vector<std::uint32_t> begins;                    ///< sorted, each once
  std::vector<object_tables_format::Symbol> symbols;    ///< same count
  std::vector<object_tables_format::CodeExtent> roots;  ///< functions that nothing calls
  object_tables_format::CodeExtent system{}, raise{};   ///< of OCaml's runtime
  std::uint64_t frametable = 0;                         ///< link-time address of caml_frametable, 0 if there is none
  std::vector<std::uint64_t> unit_frametables;          ///< likewise those of single units
  bool has_wide_places = false;                         ///< certainly OCaml 5.2 or newer
};

/// Reads .symtab, or .dynsym where it was stripped. `code` are the executable segments. Empty if the budget does not
/// suffice.
SymbolList list_symbols(ElfFile& file, std::uint64_t link_base, std::span<const AddressRange> code, StringPool& strings,
                        WorkBudget& budget);

}  // namespace rtev
