// SPDX-License-Identifier: MIT
// Makes ELF files with unwinding tables and OCaml's frametables, so that tests need no compiler.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "unit/inspect/elf_writer.hpp"
#include "unwind/object_tables.hpp"
#include "unwind/object_tables_builder.hpp"

namespace rtev::test {

/// A little-endian writer of numbers and text.
class ByteWriter {
 public:
  template <typename Number>
  ByteWriter& put(Number number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  ByteWriter& u8(unsigned value) { return put(static_cast<std::uint8_t>(value)); }
  ByteWriter& u16(unsigned value) { return put(static_cast<std::uint16_t>(value)); }
  ByteWriter& u32(std::uint64_t value) { return put(static_cast<std::uint32_t>(value)); }
  ByteWriter& u64(std::uint64_t value) { return put(value); }
  ByteWriter& text(std::string_view value) {
    bytes.append(value);
    return u8(0);
  }
  ByteWriter& align(std::size_t to, char fill = '\0') {
    bytes.append(-bytes.size() % to, fill);
    return *this;
  }
  std::size_t size() const { return bytes.size(); }

  std::string bytes;
};

inline std::string instructions(std::initializer_list<unsigned> codes) {
  std::string bytes;
  for (const unsigned code : codes) bytes.push_back(static_cast<char>(code));
  return bytes;
}

// Instructions of .eh_frame with small operands.
inline std::string advance(unsigned distance) {
  return instructions({0x40 | distance});
}
inline std::string def_cfa(unsigned number, unsigned offset) {
  return instructions({0x0c, number, offset});
}
inline std::string cfa_offset(unsigned offset) {
  return instructions({0x0e, offset});
}
/// In memory at CFA - 8 * words.
inline std::string saved(unsigned number, unsigned words) {
  return instructions({0x80 | number, words});
}
inline std::string cfa_expression(const std::string& code) {
  return instructions({0x0f, static_cast<unsigned>(code.size())}) + code;
}

/// Writes .eh_frame at a link-time address.
class EhFrameWriter {
 public:
  static constexpr std::uint64_t address = 0x4000;

  /// What functions have in common; the number for function(). `begin` are its instructions.
  std::size_t common(const std::string& begin, std::string_view augmentation = "zR", unsigned return_column = 16) {
    const std::size_t at = out_.size();
    ByteWriter body;
    body.u32(0).u8(1).text(augmentation).u8(1).u8(0x78).u8(return_column).u8(1).u8(0x1b);
    body.bytes += begin;
    entry(body);
    return at;
  }
  void function(std::size_t common, std::uint64_t begin, std::uint32_t size, const std::string& code) {
    ByteWriter body;
    body.u32(out_.size() + 4 - common);
    body.u32(begin - (address + out_.size() + 8)).u32(size).u8(0);
    body.bytes += code;
    entry(body);
  }
  ByteWriter& raw() { return out_; }
  std::string bytes() const { return out_.bytes + std::string(4, '\0'); }

 private:
  void entry(ByteWriter& body) {
    body.align(8);
    body.bytes.append(4, '\0');
    out_.u32(body.size());
    out_.bytes += body.bytes;
  }

  ByteWriter out_;
};

/// What a file has. Its code is at text_offset of the file and at text_address in memory.
struct ObjectShape {
  static constexpr std::uint64_t text_offset = 0x1000, text_address = 0x2000, text_size = 0x1000;
  static constexpr std::uint64_t data_address = 0x10000;

  std::uint16_t machine = EM_X86_64;
  std::uint64_t entry = 0;
  std::uint64_t base = 0;  ///< only of the segments: tables inside are written by the tests
  bool section_headers = true;
  std::string eh_frame{};
  std::string data{};
  std::vector<ElfSymbol> symbols{};
  std::vector<Elf64_Rela> relocations{};
  std::string build_id{};
  std::string debug_line{}, debug_line_str{};
  std::uint64_t debug_flags = 0;  ///< of these two
};

/// Where the code of these files begins.
inline constexpr std::uint32_t code = ObjectShape::text_address;

inline std::string write_object(const ObjectShape& shape) {
  using namespace detail;
  std::string file(ObjectShape::text_offset, '\0');
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections{Elf64_Shdr{}};
  std::string names(1, '\0');
  const auto load = [&](std::uint32_t type, std::uint32_t flags, std::uint64_t address, const std::string& bytes) {
    segments.push_back(
        {type, flags, file.size(), shape.base + address, shape.base + address, bytes.size(), bytes.size(), 8});
    file += bytes;
    file.append(-file.size() % 8, '\0');
  };
  const auto named = [&](std::string_view name, Elf64_Shdr header, std::uint64_t address) {
    header.sh_name = static_cast<std::uint32_t>(names.size());
    header.sh_addr = shape.base + address;
    names += std::string(name) + '\0';
    sections.push_back(header);
  };
  segments.push_back({PT_LOAD, PF_R, 0, shape.base, shape.base, file.size(), file.size(), 8});
  load(PT_LOAD, PF_R | PF_X, ObjectShape::text_address, std::string(ObjectShape::text_size, '\xcc'));
  named(".eh_frame", section(SHT_PROGBITS, SHF_ALLOC, file.size(), shape.eh_frame.size()), EhFrameWriter::address);
  load(PT_LOAD, PF_R, EhFrameWriter::address, shape.eh_frame);
  // The index of .eh_frame: of it only the head is used.
  ByteWriter index;
  index.u8(1).u8(0x1b).u8(0xff).u8(0xff).u32(EhFrameWriter::address - 0x9004);
  load(PT_GNU_EH_FRAME, PF_R, 0x9000, index.bytes);
  if (!shape.data.empty()) load(PT_LOAD, PF_R | PF_W, ObjectShape::data_address, shape.data);
  if (!shape.relocations.empty()) {
    ByteWriter table, dynamic;
    for (const Elf64_Rela& relocation : shape.relocations) table.put(relocation);
    load(PT_LOAD, PF_R, 0xa000, table.bytes);
    dynamic.u64(DT_RELA).u64(shape.base + 0xa000).u64(DT_RELASZ).u64(table.size()).u64(DT_NULL).u64(0);
    load(PT_DYNAMIC, PF_R, 0xb000, dynamic.bytes);
  }
  if (!shape.build_id.empty()) {
    ByteWriter note;
    note.u32(4).u32(shape.build_id.size()).u32(NT_GNU_BUILD_ID).text("GNU");
    note.bytes += shape.build_id;
    load(PT_NOTE, PF_R, 0xc000, note.bytes);
  }
  for (const auto& [name, bytes] :
       {std::pair{".debug_line", shape.debug_line}, {".debug_line_str", shape.debug_line_str}}) {
    if (bytes.empty()) continue;
    named(name, section(SHT_PROGBITS, shape.debug_flags, file.size(), bytes.size()), 0);
    file += bytes;
    file.append(-file.size() % 8, '\0');
  }
  if (!shape.symbols.empty()) append_symbols(file, sections, SHT_SYMTAB, shape.symbols);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = shape.machine;
  header.e_entry = shape.entry;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<std::uint16_t>(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) put(file, header.e_phoff + i * sizeof(Elf64_Phdr), segments[i]);
  if (shape.section_headers) {
    names += ".shstrtab";
    names.push_back('\0');
    auto strings = section(SHT_STRTAB, 0, file.size(), names.size());
    strings.sh_name = static_cast<std::uint32_t>(names.size() - 10);
    file += names;
    header.e_shstrndx = static_cast<std::uint16_t>(sections.size());
    sections.push_back(strings);
    header.e_shoff = file.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(sections.size());
    for (const Elf64_Shdr& entry : sections) append(file, entry);
  }
  put(file, 0, header);
  return file;
}

inline Result<std::vector<std::byte>> build_tables(std::string_view file) {
  const UniqueFd fd = memory_file(file);
  return build_object_tables(fd.get());
}

/// The tables of a file of that shape.
inline ObjectTables tables_of(const ObjectShape& shape) {
  auto bytes = build_tables(write_object(shape));
  EXPECT_TRUE(bytes) << bytes.error().message();
  auto tables = ObjectTables::from_bytes(std::move(bytes.value()));
  EXPECT_TRUE(tables) << tables.error().message();
  return std::move(tables.value());
}

}  // namespace rtev::test
