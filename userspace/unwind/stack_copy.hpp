// SPDX-License-Identifier: MIT
// Registers of a thread and pieces of its memory, copied at one moment: all that unwinding needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace rtev {

struct MemoryCopy {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes{};

  /// Whether it holds all of [first, first + size).
  bool contains(std::uint64_t first, std::size_t size) const {
    return size <= bytes.size() && first - address <= bytes.size() - size;
  }
};

struct StackCopy {
  /// By DWARF's numbers. x86-64: 0 to 16, where 7 is rsp and 16 rip. arm64: x0 to x30, sp 31, pc 32.
  std::array<std::uint64_t, 33> registers{};
  /// In any order; may overlap.
  std::span<const MemoryCopy> copies{};

  /// A word of the thread's memory; nothing if it was not copied.
  std::optional<std::uint64_t> read_word(std::uint64_t address) const {
    std::size_t hint = 0;
    return read_word(address, hint);
  }
  /// Likewise. `hint` is the number of the copy that had the last one: mostly it has this one, too.
  std::optional<std::uint64_t> read_word(std::uint64_t address, std::size_t& hint) const {
    std::uint64_t word = 0;
    return read_word(address, hint, word) ? std::optional(word) : std::nullopt;
  }
  /// Likewise, for where each nanosecond counts. False if the word was not copied.
  bool read_word(std::uint64_t address, std::size_t& hint, std::uint64_t& word) const {
    if (hint < copies.size() && read_from(copies[hint], address, word)) return true;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!read_from(copies[i], address, word)) continue;
      hint = i;
      return true;
    }
    return false;
  }

 private:
  static bool read_from(const MemoryCopy& copy, std::uint64_t address, std::uint64_t& word) {
    if (!copy.contains(address, sizeof word)) return false;
    std::memcpy(&word, copy.bytes.data() + (address - copy.address), sizeof word);
    return true;
  }
};

}  // namespace rtev
