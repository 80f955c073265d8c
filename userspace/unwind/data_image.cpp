// SPDX-License-Identifier: MIT
#include "unwind/data_image.hpp"

#include <algorithm>

#include "base/processor.hpp"

namespace rtev {
namespace {

/// Each look-up goes through all of them.
constexpr std::size_t max_blocks = 64;
constexpr std::size_t relocations_at_once = (256u << 10) / sizeof(Elf64_Rela);
constexpr std::uint64_t max_relocation_bytes = 128u << 20;
constexpr std::uint64_t max_symbol_bytes = 64u << 20;
constexpr std::size_t max_dynamic_entries = 4096;

/// A table of which no more memory is taken than the file has bytes for.
template <typename Entry>
std::vector<Entry> read_entries(ElfFile& file, Extent extent, std::uint64_t max_size) {
  if (extent.offset >= file.size()) return {};
  std::vector<Entry> entries(std::min({extent.size, file.size() - extent.offset, max_size}) / sizeof(Entry));
  const std::size_t got = file.read(extent.offset, std::as_writable_bytes(std::span{entries}));
  entries.resize(got / sizeof(Entry));
  return entries;
}

}  // namespace

std::optional<Extent> file_extent(const ElfFile& file, std::uint64_t address) {
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
      continue;
    const std::uint64_t within = address - segment.p_vaddr;
    std::uint64_t offset = 0;
    if (!__builtin_add_overflow(segment.p_offset, within, &offset)) return Extent{offset, segment.p_filesz - within};
  }
  return std::nullopt;
}

DataImage::DataImage(ElfFile& file, WorkBudget& budget) {
  if (!budget.has_left_now()) return;
  std::uint64_t room = max_bytes;
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0 || segment.p_offset >= file.size()) continue;
    if (blocks_.size() == max_blocks) break;
    const std::uint64_t size = std::min({segment.p_filesz, file.size() - segment.p_offset, room});
    if (size == 0) continue;
    memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    const std::span bytes{memory_.back().get(), size};
    const std::size_t got = file.read(segment.p_offset, bytes);
    blocks_.push_back({segment.p_vaddr, bytes.first(got)});
    room -= size;
  }

  const Elf64_Phdr* const dynamic = file.segment(PT_DYNAMIC);
  if (!dynamic || blocks_.empty()) return;
  std::uint64_t address = 0, size = 0;
  const Extent extent{dynamic->p_offset, std::min<std::uint64_t>(dynamic->p_filesz, max_dynamic_entries * 16)};
  for (const Elf64_Dyn& entry : read_entries<Elf64_Dyn>(file, extent, extent.size)) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_RELA) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_RELASZ) size = entry.d_un.d_val;
  }
  const auto table = file_extent(file, address);
  if (table && size != 0) relocate(file, {table->offset, std::min({size, table->size, max_relocation_bytes})}, budget);
}

void DataImage::relocate(ElfFile& file, Extent table, WorkBudget& budget) {
  const Processor* const processor = find_processor(file.machine());
  if (processor == nullptr) return;
  std::optional<std::vector<Elf64_Sym>> symbols;
  std::vector<Elf64_Rela> window(std::min<std::uint64_t>(relocations_at_once, table.size / sizeof(Elf64_Rela)));
  while (table.size >= sizeof(Elf64_Rela) && !window.empty()) {
    const std::span wanted =
        std::span{window}.first(std::min<std::uint64_t>(window.size(), table.size / sizeof(Elf64_Rela)));
    const std::size_t count = file.read(table.offset, std::as_writable_bytes(wanted)) / sizeof(Elf64_Rela);
    if (count == 0) return;
    for (const Elf64_Rela& relocation : wanted.first(count)) {
      if (!budget.has_left()) return;
      const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
      if (type == processor->relative_relocation) {
        store(relocation.r_offset, static_cast<std::uint64_t>(relocation.r_addend));
      } else if (type == processor->symbol_relocation) {
        if (!symbols) {
          const Elf64_Shdr* const section = file.section(SHT_DYNSYM);
          symbols = section ? read_entries<Elf64_Sym>(file, {section->sh_offset, section->sh_size}, max_symbol_bytes)
                            : std::vector<Elf64_Sym>{};
        }
        const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
        if (index < symbols->size() && (*symbols)[index].st_shndx != SHN_UNDEF)
          store(relocation.r_offset, (*symbols)[index].st_value + static_cast<std::uint64_t>(relocation.r_addend));
      }
    }
    table = {table.offset + count * sizeof(Elf64_Rela), table.size - count * sizeof(Elf64_Rela)};
  }
}

void DataImage::store(std::uint64_t address, std::uint64_t value) {
  for (const Block& block : blocks_) {
    if (address < block.address || address - block.address >= block.bytes.size()) continue;
    const std::size_t offset = address - block.address;
    if (block.bytes.size() - offset >= sizeof value) std::memcpy(block.bytes.data() + offset, &value, sizeof value);
    return;
  }
}

std::string_view DataImage::text(std::uint64_t address, std::size_t max_length) const {
  const auto bytes = from(address);
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  const std::size_t room = std::min(bytes.size(), max_length + 1);
  const std::size_t length = room == 0 ? 0 : ::strnlen(begin, room);
  return length == room ? std::string_view{} : std::string_view{begin, length};
}

}  // namespace rtev
