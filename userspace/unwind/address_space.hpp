// SPDX-License-Identifier: MIT
// Which code lies where in a process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unwind/object_tables.hpp"

namespace rtev {

/// An executable mapping: [begin, end).
struct CodeMapping {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t file_offset = 0;                 ///< of `begin`
  std::shared_ptr<const ObjectTables> tables{};  ///< null if they are not there (yet)
  std::string path{};                            ///< as the kernel names the file
  bool is_unread = false;                        ///< the file has not been looked at: ask again

  /// The address of code as its tables count it; nothing without tables, or where they have no code.
  std::optional<std::uint32_t> object_address(std::uint64_t address) const {
    return tables ? tables->address_of(address - begin + file_offset) : std::nullopt;
  }
};

/// The executable mappings of one process.
class AddressSpace {
 public:
  static constexpr std::size_t npos = SIZE_MAX;

  AddressSpace() = default;
  /// In any order. Of mappings that overlap, the one that begins first is kept.
  explicit AddressSpace(std::vector<CodeMapping> mappings) : mappings_(std::move(mappings)) {
    std::ranges::stable_sort(mappings_, {}, &CodeMapping::begin);
    std::uint64_t end = 0;
    std::erase_if(mappings_, [&](const CodeMapping& mapping) {
      if (mapping.begin >= mapping.end || mapping.begin < end) return true;
      end = mapping.end;
      return false;
    });
  }

  const std::vector<CodeMapping>& mappings() const { return mappings_; }
  const CodeMapping& mapping(std::size_t index) const { return mappings_.at(index); }
  /// Index of the mapping with an address, npos if there is none. `hint` is tried first.
  std::size_t find(std::uint64_t address, std::size_t hint = npos) const {
    if (hint < mappings_.size() && address >= mappings_[hint].begin && address < mappings_[hint].end) return hint;
    const auto after = std::ranges::upper_bound(mappings_, address, {}, &CodeMapping::begin);
    if (after == mappings_.begin() || address >= std::prev(after)->end) return npos;
    return static_cast<std::size_t>(after - mappings_.begin()) - 1;
  }
  void set_tables(std::size_t index, std::shared_ptr<const ObjectTables> tables) {
    mappings_.at(index).tables = std::move(tables);
  }

 private:
  std::vector<CodeMapping> mappings_;
};

}  // namespace rtev
