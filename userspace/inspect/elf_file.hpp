// SPDX-License-Identifier: MIT
// Reads an untrusted ELF file: its tables, its symbols, and a search in its bytes.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/change_check.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// A range of bytes in a file. May lie outside it: reading is what checks.
struct Extent {
  std::uint64_t offset = 0, size = 0;
};

/// Names of a symbol table.
class StringTable {
 public:
  /// Longer names come back cut to this length.
  static constexpr std::size_t max_name = 128;

  explicit StringTable(std::vector<char> bytes) : bytes_(std::move(bytes)) {}
  /// The name at an offset; empty if the table has none there, or none that ends.
  std::string_view at(std::uint32_t offset) const;

 private:
  std::vector<char> bytes_;
};

/// A 64-bit ELF program or library in the byte order of this machine.
///
/// Everything is read with pread, for a mapping would fault when the owner cuts the file short. Reading stops, as at
/// the end of the file, when the budget is used up or an error occurred; so whatever the headers claim, work is bounded
/// by the budget, and memory by the largest table. That is also why libelf does not do this: its memory follows
/// what the headers claim, 2 GB for a sparse file that takes 8 KiB of disk.
class ElfFile {
 public:
  /// Bytes read from one file at the most; a read of fewer than 4096 counts as that many. An ordinary program has no
  /// byte that is read more than a few times.
  static constexpr std::uint64_t max_read_bytes = 256u << 20;
  static constexpr std::uint64_t read_budget(std::uint64_t file_bytes) {
    return std::min(max_read_bytes, 4 * std::min(file_bytes, max_read_bytes) + (1u << 20));
  }

  /// Nothing if it is not such a file. The descriptor stays the caller's; its offset is not moved. While the file is
  /// being changed reading fails with EAGAIN.
  static Result<std::optional<ElfFile>> open(int fd, const ChangeCheck& check = {});

  /// Size of the file in bytes, when it was opened.
  std::uint64_t size() const { return size_; }
  std::uint16_t machine() const { return header_.e_machine; }
  /// Where the program, or the dynamic linker, begins to run.
  std::uint64_t entry() const { return header_.e_entry; }
  /// True for what can be executed, also static position-independent programs; false for shared libraries.
  bool is_program() const { return is_program_; }
  std::span<const Elf64_Phdr> segments() const { return segments_; }
  /// Empty where the file has no section headers.
  std::span<const Elf64_Shdr> sections() const { return sections_; }
  /// The first segment, the first section of a type; nullptr if there is none.
  const Elf64_Phdr* segment(std::uint32_t type) const;
  const Elf64_Shdr* section(std::uint32_t type) const;
  /// The first section of this name. Reads the names of all sections.
  const Elf64_Shdr* section_named(std::string_view name);
  /// The section that holds the names of a symbol table.
  const Elf64_Shdr* names_of(const Elf64_Shdr& symbols) const;
  /// Where the code at a link-time address lies in the file; nothing if no executable segment has it.
  std::optional<std::uint64_t> code_offset(std::uint64_t address) const;

  /// Reads what there is of an extent, up to the size of `into`; the number of bytes read.
  std::size_t read(std::uint64_t offset, std::span<std::byte> into);
  /// The code at an offset in the file; fewer bytes than asked for where the file ends.
  std::vector<std::byte> code(std::uint64_t offset, std::size_t size);
  /// Where the bytes occur first in the extent: an offset in the file. They may be 256 at the most.
  std::optional<std::uint64_t> find(Extent extent, std::string_view bytes);
  bool contains(Extent extent, std::string_view bytes) { return find(extent, bytes).has_value(); }
  /// As much of a string table as is worth keeping.
  StringTable strings(const Elf64_Shdr& table);
  /// Calls `visit(symbol)` for each symbol of a table that is defined in this file.
  template <typename Visit>
  void for_each_symbol(const Elf64_Shdr& table, Visit&& visit) {
    constexpr std::size_t entry = sizeof(Elf64_Sym);
    if (table.sh_entsize != entry) return;
    Extent rest{table.sh_offset, std::min<std::uint64_t>(table.sh_size, max_symbols * entry)};
    while (rest.size >= entry) {
      const auto symbols = read_symbols(rest);
      if (symbols.empty()) return;
      for (const Elf64_Sym& symbol : symbols)
        if (symbol.st_shndx != SHN_UNDEF) visit(symbol);
      rest = {rest.offset + symbols.size_bytes(), rest.size - symbols.size_bytes()};
    }
  }

  /// The libraries that it is linked with and whose names have this in them, as it names them: a file or a path.
  std::vector<std::string> needed_libraries(std::string_view part);

  /// Link-time address of a word in which the dynamic linker leaves the number by which threads find this library's
  /// thread-local variables; nothing where its code does not ask for that.
  std::optional<std::uint64_t> tls_module_word();

  /// errno of the first read that failed, 0 if all went well. What was not read looked as if it were not there.
  int read_error() const { return error_; }

 private:
  static constexpr std::uint64_t max_symbols = 8u << 20;

  ElfFile(int fd, std::uint64_t size, ChangeCheck check)
      : fd_(fd), is_being_changed_(std::move(check)), size_(size), budget_(read_budget(size)) {}
  bool load_tables();
  bool has_pie_flag(Extent dynamic);
  template <typename Entry>
  std::vector<Entry> read_table(std::uint64_t offset, std::size_t count);
  std::span<const Elf64_Sym> read_symbols(Extent rest);

  int fd_;
  ChangeCheck is_being_changed_;
  std::uint64_t size_;
  int error_ = 0;
  std::uint64_t budget_;
  bool is_program_ = false;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::byte> window_;
  std::vector<Elf64_Sym> symbols_;
};

}  // namespace rtev
