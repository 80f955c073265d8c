// SPDX-License-Identifier: MIT
// The data of a program as it is once it was loaded: with the addresses that the dynamic linker fills in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "inspect/elf_file.hpp"
#include "unwind/work_budget.hpp"

namespace rtev {

/// The writable segments of a file, as if it was loaded at its link-time addresses.
class DataImage {
 public:
  /// More of the segments is not read.
  static constexpr std::uint64_t max_bytes = 128u << 20;

  struct Block {
    std::uint64_t address = 0;
    std::span<std::byte> bytes;
  };

  /// Where the budget does not suffice, addresses are missing.
  DataImage(ElfFile& file, WorkBudget& budget);

  std::span<const Block> blocks() const { return blocks_; }
  /// All that follows an address in its segment; empty if no segment has it.
  std::span<const std::byte> from(std::uint64_t address) const {
    for (const Block& block : blocks_)
      if (address >= block.address && address - block.address < block.bytes.size())
        return block.bytes.subspan(address - block.address);
    return {};
  }
  template <typename Number>
  std::optional<Number> load(std::uint64_t address) const {
    const auto bytes = from(address);
    if (bytes.size() < sizeof(Number)) return std::nullopt;
    Number number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  /// A text that ends with a zero byte; empty if there is none.
  std::string_view text(std::uint64_t address, std::size_t max_length) const;

 private:
  void relocate(ElfFile& file, Extent table, WorkBudget& budget);
  void store(std::uint64_t address, std::uint64_t value);

  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<Block> blocks_;
};

/// Where bytes at a link-time address lie in a file, with all that follows them in their segment.
std::optional<Extent> file_extent(const ElfFile& file, std::uint64_t address);

}  // namespace rtev
