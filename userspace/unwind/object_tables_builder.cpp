// SPDX-License-Identifier: MIT
#include "unwind/object_tables_builder.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/processor.hpp"
#include "inspect/elf_file.hpp"
#include "unwind/byte_cursor.hpp"
#include "unwind/cfi_compiler.hpp"
#include "unwind/compressed_section.hpp"
#include "unwind/data_image.hpp"
#include "unwind/frametable_reader.hpp"
#include "unwind/line_reader.hpp"
#include "unwind/object_tables_format.hpp"
#include "unwind/string_pool.hpp"
#include "unwind/symbol_list.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr std::uint64_t max_eh_frame = 64u << 20, max_lines = 32u << 20, max_line_names = 4u << 20;
constexpr std::size_t max_segments = 64;
constexpr std::uint64_t max_note_bytes = 64u << 10;

constexpr const char* build_failure = "cannot read program";

/// The lowest address that is loaded, at a page.
std::uint64_t link_base(const ElfFile& file) {
  std::uint64_t lowest = UINT64_MAX;
  for (const Elf64_Phdr& segment : file.segments())
    if (segment.p_type == PT_LOAD) lowest = std::min(lowest, segment.p_vaddr);
  return lowest == UINT64_MAX ? 0 : lowest & ~std::uint64_t{4095};
}

std::vector<AddressRange> code_ranges(const ElfFile& file) {
  std::vector<AddressRange> ranges;
  for (const Elf64_Phdr& segment : file.segments()) {
    std::uint64_t end = 0;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (__builtin_add_overflow(segment.p_vaddr, segment.p_filesz, &end) || ranges.size() == max_segments) continue;
    ranges.push_back({segment.p_vaddr, end});
  }
  return ranges;
}

std::vector<Segment> code_segments(const ElfFile& file, std::uint64_t base) {
  std::vector<Segment> segments;
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || segments.size() == max_segments) continue;
    const std::uint64_t offset = segment.p_vaddr - base;
    if (segment.p_vaddr < base || offset > UINT32_MAX) continue;
    segments.push_back({.file_offset = segment.p_offset,
                        .bytes = std::min<std::uint64_t>(segment.p_filesz, UINT32_MAX - offset),
                        .address = static_cast<std::uint32_t>(offset)});
  }
  return segments;
}

std::vector<std::byte> read_extent(ElfFile& file, Extent extent, std::uint64_t limit) {
  if (extent.offset >= file.size()) return {};
  return file.code(extent.offset, std::min({extent.size, file.size() - extent.offset, limit}));
}

struct LoadedBytes {
  std::uint64_t address = 0;
  std::vector<std::byte> bytes;
};

/// .eh_frame by its section, or, where there are no sections, by what the index of it says.
LoadedBytes read_eh_frame(ElfFile& file) {
  if (const Elf64_Shdr* const section = file.section_named(".eh_frame"); section && section->sh_type != SHT_NOBITS)
    return {section->sh_addr, read_extent(file, {section->sh_offset, section->sh_size}, max_eh_frame)};
  const Elf64_Phdr* const index = file.segment(PT_GNU_EH_FRAME);
  if (!index) return {};
  const auto head = read_extent(file, {index->p_offset, index->p_filesz}, 16);
  ByteCursor cursor(head);
  const auto version = cursor.take<std::uint8_t>();
  const auto encoding = cursor.take<std::uint8_t>();
  cursor.take<std::uint16_t>();
  constexpr std::uint8_t relative_i32 = 0x1b;  // what all linkers write
  const auto distance = cursor.take<std::int32_t>();
  if (!cursor.ok() || version != 1 || encoding != relative_i32) return {};
  const std::uint64_t address = index->p_vaddr + 4 + static_cast<std::uint64_t>(std::int64_t{distance});
  const auto extent = file_extent(file, address);
  if (!extent) return {};
  return {address, read_extent(file, *extent, max_eh_frame)};
}

/// A section that is not loaded; empty if there is none.
std::vector<std::byte> read_section(ElfFile& file, std::string_view name, std::uint64_t limit, WorkBudget& budget) {
  const Elf64_Shdr* const section = budget.has_left_now() ? file.section_named(name) : nullptr;
  if (!section || section->sh_type == SHT_NOBITS) return {};
  auto bytes = read_extent(file, {section->sh_offset, section->sh_size}, limit);
  return (section->sh_flags & SHF_COMPRESSED) != 0 ? decompress_section(bytes, limit, budget) : std::move(bytes);
}

/// Where a static program jumps to functions that it chose when it started: no tool writes tables for that. Dynamic
/// programs have them, and need them, for they push something before they jump.
std::vector<AddressRange> plain_jumps(ElfFile& file) {
  const Elf64_Shdr* const section = file.segment(PT_INTERP) ? nullptr : file.section_named(".plt");
  std::uint64_t end = 0;
  if (!section || (section->sh_flags & SHF_EXECINSTR) == 0 ||
      __builtin_add_overflow(section->sh_addr, section->sh_size, &end))
    return {};
  // A position-independent library binds its functions when they are called first.
  if (file.section(SHT_DYNAMIC)) return {};
  return {{section->sh_addr, end}};
}

void read_build_id(ElfFile& file, Header& header) {
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_NOTE) continue;
    const auto bytes = read_extent(file, {segment.p_offset, segment.p_filesz}, max_note_bytes);
    const std::size_t align = segment.p_align == 8 ? 8 : 4;
    ByteCursor cursor(bytes);
    while (!cursor.at_end()) {
      const auto note = cursor.take<Elf64_Nhdr>();
      const auto name = cursor.take_bytes(note.n_namesz);
      cursor.take_bytes(-cursor.position() % align);
      const auto content = cursor.take_bytes(note.n_descsz);
      if (!cursor.ok()) break;
      const bool is_build_id =
          note.n_type == NT_GNU_BUILD_ID && name.size() == 4 && std::memcmp(name.data(), "GNU", 4) == 0;
      if (is_build_id && content.size() <= max_build_id) {
        std::memcpy(header.build_id.data(), content.data(), content.size());
        header.build_id_bytes = static_cast<std::uint8_t>(content.size());
        return;
      }
      cursor.take_bytes(std::min<std::size_t>(-cursor.position() % align, cursor.left()));
    }
  }
}

/// The code that the kernel starts, where no table says how to unwind it, as in the dynamic linker of glibc: up to the
/// next function. Nothing if tables know that code: then they say where it ends, too.
std::optional<CodeExtent> bare_entry(const ElfFile& file, std::uint64_t base, const CfiTables& cfi) {
  constexpr std::uint32_t max_bytes = 4096;
  const std::uint64_t offset = file.entry() - base;
  if (file.entry() <= base || offset >= UINT32_MAX - max_bytes) return std::nullopt;
  const auto begin = static_cast<std::uint32_t>(offset);
  const auto next = std::ranges::upper_bound(cfi.row_begins, begin);
  const auto index = static_cast<std::size_t>(next - cfi.row_begins.begin());
  if (index == 0 || (cfi.row_rules[index - 1] & ~first_row) != no_rule || next == cfi.row_begins.end())
    return std::nullopt;
  return CodeExtent{.begin = begin, .end = std::min(*next, begin + max_bytes)};
}

/// Puts the parts one after the other.
class Assembler {
 public:
  template <typename Range>
  void add(Part part, const Range& range) {
    const auto bytes = std::as_bytes(std::span{range});
    end_ += -end_ % alignment;
    if (bytes.size() > max_bytes - std::min(end_, max_bytes)) return;
    pieces_.push_back({end_, bytes});
    header.parts[static_cast<std::size_t>(part)] = {static_cast<std::uint32_t>(end_),
                                                    static_cast<std::uint32_t>(bytes.size())};
    end_ += bytes.size();
  }
  /// Of two parts with the same count both are there or none.
  template <typename First, typename Second>
  void add(Part part, const First& range, Part other, const Second& other_range) {
    if (range.size() == other_range.size()) {
      add(part, range);
      add(other, other_range);
    }
  }
  std::vector<std::byte> finish() {
    header.magic = magic;
    header.bytes = static_cast<std::uint32_t>(end_);
    std::vector<std::byte> all(end_);
    std::memcpy(all.data(), &header, sizeof header);
    for (const auto& [offset, bytes] : pieces_)
      if (!bytes.empty()) std::memcpy(all.data() + offset, bytes.data(), bytes.size());
    return all;
  }

  Header header{};

 private:
  std::size_t end_ = sizeof(Header);
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> pieces_;
};

}  // namespace

Result<std::vector<std::byte>> build_object_tables(int fd, const ChangeCheck& check, std::uint64_t cpu_ns) {
  WorkBudget budget(cpu_ns);
  auto opened = ElfFile::open(fd, check);
  if (!opened) return std::unexpected(std::move(opened.error()));
  const bool known = *opened && find_processor((*opened)->machine()) != nullptr;
  if (!known) return std::unexpected(Error{build_failure, {}, "not a program of a known machine"});
  ElfFile& file = **opened;

  const std::uint64_t base = link_base(file);
  const auto code = code_ranges(file);
  const auto segments = code_segments(file, base);
  // What stacks need first comes first: the budget may not suffice for all.
  StringPool strings;
  SymbolList symbols = list_symbols(file, base, code, strings, budget);
  const DataImage data(file, budget);
  const FrameTables frames = read_frametables({.data = data,
                                               .code = code,
                                               .link_base = base,
                                               .list = symbols.frametable,
                                               .units = symbols.unit_frametables,
                                               .has_wide_places = symbols.has_wide_places},
                                              strings, budget);
  const LoadedBytes eh_frame = budget.has_left_now() ? read_eh_frame(file) : LoadedBytes{};
  const auto jumps = plain_jumps(file);
  const CfiTables cfi = compile_cfi({.bytes = eh_frame.bytes,
                                     .address = eh_frame.address,
                                     .link_base = base,
                                     .machine = file.machine(),
                                     .code = code,
                                     .jumps = jumps},
                                    budget);
  if (const auto entry = bare_entry(file, base, cfi)) symbols.roots.insert(symbols.roots.begin(), *entry);
  const auto debug_line = read_section(file, ".debug_line", max_lines, budget);
  const auto debug_line_str =
      debug_line.empty() ? debug_line : read_section(file, ".debug_line_str", max_line_names, budget);
  const LineTables lines =
      read_lines({.lines = debug_line, .names = debug_line_str, .code = code, .link_base = base}, strings, budget);

  Assembler assembler;
  assembler.header.link_base = base;
  assembler.header.machine = file.machine();
  assembler.header.is_cut = budget.is_used_up() ? 1 : 0;
  assembler.header.system = symbols.system;
  assembler.header.raise = symbols.raise;
  read_build_id(file, assembler.header);
  assembler.add(Part::segments, segments);
  assembler.add(Part::row_begins, cfi.row_begins, Part::row_rules, cfi.row_rules);
  assembler.add(Part::rule_offsets, cfi.rule_offsets);
  assembler.add(Part::rules, cfi.rules);
  assembler.add(Part::expressions, cfi.expressions);
  assembler.add(Part::returns, frames.returns);
  assembler.add(Part::frame_data, frames.frame_data, Part::return_places, frames.return_places);
  assembler.add(Part::places, frames.places);
  assembler.add(Part::place_names, frames.place_names);
  assembler.add(Part::symbol_begins, symbols.begins, Part::symbols, symbols.symbols);
  assembler.add(Part::roots, symbols.roots);
  assembler.add(Part::line_begins, lines.begins, Part::line_offsets, lines.offsets);
  assembler.add(Part::line_rows, lines.rows);
  assembler.add(Part::strings, strings.bytes());
  if (file.read_error()) return errno_error(file.read_error(), build_failure);
  return assembler.finish();
}

}  // namespace rtev
