// SPDX-License-Identifier: MIT
// Makes small ELF files of a chosen shape, so that tests need no compiler and no OCaml.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace rtev::test {

struct ElfSymbol {
  std::string name{};
  std::uint64_t value = 0, size = 16;
  std::uint8_t type = STT_FUNC, binding = STB_GLOBAL;
  bool defined = true, absolute = false;
};

/// The shape of a file. Its code lies at `text_offset` of the file and at `base` + `text_address` in memory, which
/// differ so that confusing them shows.
struct ElfShape {
  static constexpr std::uint64_t text_offset = 0x1000, text_address = 0x2000, text_size = 0x1000;

  std::uint16_t type = ET_DYN, machine = EM_X86_64;
  std::uint64_t base = 0;
  bool interpreter = true, pie_flag = false, section_headers = true;
  std::vector<ElfSymbol> dynsym{}, symtab{};
  std::vector<Elf64_Rela> relocations{};
  std::vector<std::string> needed{};  ///< libraries
  std::string rodata{};
  bool is_writable = false;  ///< the part with `rodata`
  std::string code{};        ///< where the program begins
  std::optional<std::uint64_t> tls_size{};
  std::uint64_t tls_align = 8;
};

namespace detail {

template <typename T>
void put(std::string& file, std::size_t at, const T& value) {
  if (file.size() < at + sizeof value) file.resize(at + sizeof value);
  std::memcpy(file.data() + at, &value, sizeof value);
}

template <typename T>
void append(std::string& file, const T& value) {
  put(file, file.size(), value);
}

inline Elf64_Shdr section(std::uint32_t type, std::uint64_t flags, std::uint64_t offset, std::uint64_t size) {
  Elf64_Shdr header{};
  header.sh_type = type;
  header.sh_flags = flags;
  header.sh_offset = offset;
  header.sh_size = size;
  header.sh_addralign = 1;
  return header;
}

/// Appends a symbol table and its names; the headers of both go to `sections`.
inline void append_symbols(std::string& file, std::vector<Elf64_Shdr>& sections, std::uint32_t type,
                           const std::vector<ElfSymbol>& symbols) {
  std::string names(1, '\0'), table(sizeof(Elf64_Sym), '\0');
  for (const ElfSymbol& symbol : symbols) {
    Elf64_Sym entry{};
    entry.st_name = static_cast<std::uint32_t>(names.size());
    entry.st_info = static_cast<std::uint8_t>(ELF64_ST_INFO(symbol.binding, symbol.type));
    entry.st_shndx = symbol.absolute ? SHN_ABS : symbol.defined ? 1 : SHN_UNDEF;
    entry.st_value = symbol.value;
    entry.st_size = symbol.size;
    append(table, entry);
    names += symbol.name + '\0';
  }
  auto header = section(type, 0, file.size(), table.size());
  header.sh_link = static_cast<std::uint32_t>(sections.size() + 1);
  header.sh_entsize = sizeof(Elf64_Sym);
  sections.push_back(header);
  file += table;
  sections.push_back(section(SHT_STRTAB, 0, file.size(), names.size()));
  file += names;
}

/// Appends a table of the libraries that are needed, and their names; the headers of both go to `sections`.
inline void append_needed(std::string& file, std::vector<Elf64_Shdr>& sections,
                          const std::vector<std::string>& libraries) {
  std::string names(1, '\0'), table;
  for (const std::string& library : libraries) {
    append(table, Elf64_Dyn{.d_tag = DT_NEEDED, .d_un = {.d_val = names.size()}});
    names += library + '\0';
  }
  append(table, Elf64_Dyn{.d_tag = DT_NULL, .d_un = {.d_val = 0}});
  auto header = section(SHT_DYNAMIC, SHF_ALLOC, file.size(), table.size());
  header.sh_link = static_cast<std::uint32_t>(sections.size() + 1);
  header.sh_entsize = sizeof(Elf64_Dyn);
  sections.push_back(header);
  file += table;
  sections.push_back(section(SHT_STRTAB, SHF_ALLOC, file.size(), names.size()));
  file += names;
}

}  // namespace detail

/// The bytes of a file of that shape.
inline std::string write_elf(const ElfShape& shape) {
  using namespace detail;
  std::string file(ElfShape::text_offset, '\0');
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections{Elf64_Shdr{}};
  const auto load = [&](std::uint32_t flags, std::uint64_t offset, std::uint64_t address, std::uint64_t size) {
    segments.push_back({PT_LOAD, flags, offset, shape.base + address, shape.base + address, size, size, 0x1000});
  };

  load(PF_R, 0, 0, file.size());
  if (shape.interpreter) segments.push_back({PT_INTERP, PF_R, 0x800, 0x800, 0x800, 16, 16, 1});

  load(PF_R | PF_X, ElfShape::text_offset, ElfShape::text_address, ElfShape::text_size);
  sections.push_back(section(SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, file.size(), ElfShape::text_size));
  file += shape.code;
  file.append(ElfShape::text_size - shape.code.size(), '\xcc');

  load(PF_R | (shape.is_writable ? PF_W : 0), file.size(), 0x4000, shape.rodata.size());
  sections.push_back(section(SHT_PROGBITS, SHF_ALLOC, file.size(), shape.rodata.size()));
  file += shape.rodata;

  if (shape.tls_size)
    segments.push_back({PT_TLS, PF_R, file.size(), 0x5000, 0x5000, 0, *shape.tls_size, shape.tls_align});
  if (shape.pie_flag) {
    segments.push_back(
        {PT_DYNAMIC, PF_R, file.size(), 0x6000, 0x6000, 2 * sizeof(Elf64_Dyn), 2 * sizeof(Elf64_Dyn), 8});
    append(file, Elf64_Dyn{.d_tag = DT_FLAGS_1, .d_un = {.d_val = DF_1_PIE}});
    append(file, Elf64_Dyn{.d_tag = DT_NULL, .d_un = {.d_val = 0}});
  }
  if (!shape.relocations.empty()) {
    auto header = section(SHT_RELA, SHF_ALLOC, file.size(), shape.relocations.size() * sizeof(Elf64_Rela));
    header.sh_entsize = sizeof(Elf64_Rela);
    sections.push_back(header);
    for (const Elf64_Rela& relocation : shape.relocations) append(file, relocation);
  }
  if (!shape.needed.empty()) append_needed(file, sections, shape.needed);
  if (!shape.dynsym.empty()) append_symbols(file, sections, SHT_DYNSYM, shape.dynsym);
  if (!shape.symtab.empty()) append_symbols(file, sections, SHT_SYMTAB, shape.symtab);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = shape.type;
  header.e_machine = shape.machine;
  header.e_version = EV_CURRENT;
  header.e_entry = shape.base + ElfShape::text_address;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<std::uint16_t>(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) put(file, header.e_phoff + i * sizeof(Elf64_Phdr), segments[i]);
  if (shape.section_headers) {
    header.e_shoff = file.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(sections.size());
    for (const Elf64_Shdr& entry : sections) append(file, entry);
  }
  put(file, 0, header);
  return file;
}

/// An open file with these bytes, which is gone when it is closed.
inline UniqueFd memory_file(std::string_view bytes) {
  UniqueFd fd{::memfd_create("rtev-test", MFD_CLOEXEC)};
  EXPECT_TRUE(fd);
  EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return fd;
}

}  // namespace rtev::test
