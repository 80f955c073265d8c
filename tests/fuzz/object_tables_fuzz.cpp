// SPDX-License-Identifier: MIT
// Any bytes as tables for unwinding, as a helper process in the hands of an attacker could send them.
#include "fuzz/table_use.hpp"

namespace rtev::fuzz {

void object_tables(Bytes input) {
  using object_tables_format::Header;
  std::vector<std::byte> bytes(std::max(input.size(), sizeof(Header)));
  std::ranges::copy(std::as_bytes(input), bytes.begin());
  // What each accepted input begins with.
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.magic = object_tables_format::magic;
  header.bytes = static_cast<std::uint32_t>(bytes.size());
  header.build_id_bytes %= object_tables_format::max_build_id + 1;
  std::memcpy(bytes.data(), &header, sizeof header);
  auto tables = ObjectTables::from_bytes(std::move(bytes));
  check(tables.has_value(), "tables with the right head are accepted");
  use_tables(std::move(*tables), static_cast<std::uint32_t>(input.size()));
}

}  // namespace rtev::fuzz
