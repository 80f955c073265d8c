// SPDX-License-Identifier: MIT
#include "unwind/kernel_symbols.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/proc_files.hpp"
#include "inspect/proc_lines.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_symbols = 1 << 20, max_name_bytes = std::size_t{64} << 20;

}  // namespace

/// "ffffffff81000000 T name", and " [module]" behind it for some.
void KernelSymbols::add_line(std::string_view line) {
  const std::string_view address = take_word(line), type = take_word(line), name = take_word(line);
  if (type.empty() || (type[0] | 0x20) == 'd' || name.empty()) return;
  std::uint64_t begin = 0;
  const auto parsed = std::from_chars(address.data(), address.data() + address.size(), begin, 16);
  if (parsed.ec != std::errc() || begin == 0) return;
  if (symbols_.size() >= max_symbols || names_.size() + name.size() > max_name_bytes) return;
  symbols_.push_back({.begin = begin, .name = static_cast<std::uint32_t>(names_.size())});
  names_.append(name).push_back('\0');
}

KernelSymbols KernelSymbols::load(const std::filesystem::path& path) {
  KernelSymbols loaded;
  const UniqueFd file = open_proc(path, O_RDONLY);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (file) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    std::string_view rest{text};
    while (rest.contains('\n')) loaded.add_line(take_until(rest, '\n'));
    text.erase(0, text.size() - rest.size());
  }
  // The first of several names of a function is kept.
  std::ranges::stable_sort(loaded.symbols_, {}, &Symbol::begin);
  const auto same = std::ranges::unique(loaded.symbols_, {}, &Symbol::begin);
  loaded.symbols_.erase(same.begin(), same.end());
  loaded.symbols_.shrink_to_fit();
  return loaded;
}

KernelSymbols::Function KernelSymbols::at(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(symbols_, address, {}, &Symbol::begin);
  if (after == symbols_.begin()) return {};
  const Symbol& symbol = *std::prev(after);
  return {.name = names_.data() + symbol.name, .begin = symbol.begin};
}

}  // namespace rtev
