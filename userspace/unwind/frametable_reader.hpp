// SPDX-License-Identifier: MIT
// Reads OCaml's frametables: which calls there are in OCaml code, how large the frame is at each, and which line it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unwind/cfi_compiler.hpp"
#include "unwind/data_image.hpp"
#include "unwind/object_tables_format.hpp"
#include "unwind/string_pool.hpp"
#include "unwind/work_budget.hpp"

namespace rtev {

/// The fields are parts of the object tables (object_tables_format::Part).
struct FrameTables {
  std::vector<std::uint32_t> returns;
  std::vector<std::uint16_t> frame_data;
  std::vector<std::uint32_t> return_places;
  std::vector<object_tables_format::Place> places;
  std::vector<object_tables_format::PlaceName> place_names;
};

/// Where the tables are.
struct FrametableSource {
  const DataImage& data;
  std::span<const AddressRange> code;  ///< executable segments
  std::uint64_t link_base = 0;
  std::uint64_t list = 0;                  ///< address of caml_frametable, 0 if it is not known
  std::span<const std::uint64_t> units{};  ///< addresses of the tables of single units
  bool has_wide_places = false;            ///< certainly OCaml 5.2 or newer; otherwise the places tell
};

/// Reads the tables of OCaml 5. Without addresses it looks for what the runtime's own table must look like. Any bytes
/// will do; what is implausible is left out. Memory is a small multiple of the size of the data. Empty if the budget
/// does not suffice.
FrameTables read_frametables(const FrametableSource& source, StringPool& strings, WorkBudget& budget);

}  // namespace rtev
