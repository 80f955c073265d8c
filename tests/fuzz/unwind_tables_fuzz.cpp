// SPDX-License-Identifier: MIT
// Any bytes as an ELF file, of which tables for unwinding are built and used.
#include "fuzz/table_use.hpp"
#include "unwind/object_tables_builder.hpp"

namespace rtev::fuzz {

void unwind_tables(Bytes input) {
  static const UniqueFd file = file_of({});
  resize(file, 0);
  check(::pwrite(file.get(), input.data(), input.size(), 0) == std::ssize(input), "pwrite");
  auto bytes = build_object_tables(file.get());
  if (!bytes) return;
  // A relocation of 24 bytes, or a name, can be read more than once, but not without end.
  check(bytes->size() <= (1u << 16) + 64 * input.size(), "tables in proportion to the file");
  auto tables = ObjectTables::from_bytes(std::move(*bytes));
  check(tables.has_value(), "tables that were built are accepted");
  use_tables(std::move(*tables), static_cast<std::uint32_t>(input.size()));
}

}  // namespace rtev::fuzz
