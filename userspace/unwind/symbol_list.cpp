// SPDX-License-Identifier: MIT
#include "unwind/symbol_list.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "unwind/ocaml_names.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr std::size_t max_file_symbols = 1u << 20;
constexpr std::size_t max_units = 1u << 16;
constexpr std::size_t max_roots = 16;

struct SymbolCandidate {
  std::uint32_t begin = 0, bytes = 0;
  std::uint32_t name = 0;  ///< in the file's table of names
  std::uint32_t rank = 0;  ///< of several names of a function the one of the lowest rank is taken
};

/// Prefers what the source calls a function: OCaml's name, then a global one that does not begin with '_'.
std::uint32_t rank_of(const Elf64_Sym& symbol, std::string_view name) {
  std::uint32_t rank = std::min<std::uint32_t>(static_cast<std::uint32_t>(name.size()), 255);
  if (!is_ocaml_symbol(name)) rank |= 1u << 15;
  if (ELF64_ST_TYPE(symbol.st_info) == STT_NOTYPE) rank |= 1u << 14;
  if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) rank |= 1u << 13;
  rank |= static_cast<std::uint32_t>(std::min<std::size_t>(name.find_first_not_of('_'), 15)) << 9;
  return rank;
}

/// The marks at both ends of a unit's code.
bool is_mark(std::string_view name) {
  return name.ends_with("code_begin") || name.ends_with("code_end");
}

bool is_unit_frametable(std::string_view name) {
  if (!name.starts_with("caml") || !name.ends_with("frametable")) return false;
  name.remove_suffix(10);
  return name.ends_with('.') || name.ends_with("__") || name.ends_with('$');
}

/// Runs of code that a thread or a program begins with. Most say so in their unwinding tables, not all.
bool is_root_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> names{"_start", "__clone", "clone", "__clone3", "clone3", "thread_start"};
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

SymbolList list_symbols(ElfFile& file, std::uint64_t link_base, std::span<const AddressRange> code, StringPool& strings,
                        WorkBudget& budget) {
  SymbolList list;
  const Elf64_Shdr* table = file.section(SHT_SYMTAB);
  if (!table) table = file.section(SHT_DYNSYM);
  const Elf64_Shdr* const names_section = table ? file.names_of(*table) : nullptr;
  if (!names_section) return list;
  const StringTable names = file.strings(*names_section);

  std::vector<SymbolCandidate> candidates;
  std::uint32_t raise_begin = 0, raise_end = 0;
  file.for_each_symbol(*table, [&](const Elf64_Sym& symbol) {
    if (!budget.has_left()) return;
    const std::uint8_t type = ELF64_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE && type != STT_OBJECT) return;
    const std::string_view name = names.at(symbol.st_name);
    if (name.empty()) return;
    const bool is_code =
        std::ranges::any_of(code, [&](const AddressRange& range) { return range.contains(symbol.st_value); });
    if (!is_code) {
      if (name == "caml_frametable")
        list.frametable = symbol.st_value;
      else if (is_unit_frametable(name) && list.unit_frametables.size() < max_units)
        list.unit_frametables.push_back(symbol.st_value);
      if (name != "caml_system__code_end") return;
    }
    const std::uint64_t offset = symbol.st_value - link_base;
    if (symbol.st_value < link_base || offset >= UINT32_MAX) return;
    const auto begin = static_cast<std::uint32_t>(offset);
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(symbol.st_size, UINT32_MAX - begin));
    if (name.starts_with("caml_")) {
      if (name == "caml_system__code_begin" || name == "caml_system.code_begin") list.system.begin = begin;
      if (name == "caml_system__code_end" || name == "caml_system.code_end") list.system.end = begin;
      if (name == "caml_raise_exn") raise_begin = begin;
      if (name == "caml_raise_exception") raise_end = begin;
      if (name == "caml_ml_runtime_events_start") list.has_wide_places = true;
    }
    if (!is_code || type == STT_OBJECT || is_mark(name)) return;
    if (type == STT_NOTYPE && ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) return;
    if (is_root_name(name) && bytes != 0 && list.roots.size() < max_roots) list.roots.push_back({begin, begin + bytes});
    if (candidates.size() < max_file_symbols)
      candidates.push_back({.begin = begin, .bytes = bytes, .name = symbol.st_name, .rank = rank_of(symbol, name)});
  });
  if (!budget.has_left_now()) return {};
  if (raise_begin < raise_end) list.raise = {raise_begin, raise_end};
  if (list.system.begin >= list.system.end) list.system = {};
  // A program that lists the tables of its units needs no others.
  if (list.frametable != 0) list.unit_frametables.clear();

  std::ranges::sort(candidates, {},
                    [](const SymbolCandidate& each) { return std::tuple(each.begin, each.rank, each.name); });
  list.begins.reserve(candidates.size());
  list.symbols.reserve(candidates.size());
  for (const SymbolCandidate& each : candidates) {
    if (!budget.has_left()) return {};
    if (!list.begins.empty() && list.begins.back() == each.begin) continue;
    list.begins.push_back(each.begin);
    list.symbols.push_back({.bytes = each.bytes, .name = strings.add(names.at(each.name))});
  }
  return list;
}

}  // namespace rtev
