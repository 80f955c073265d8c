// SPDX-License-Identifier: MIT
// The string table of a recording: which slot holds the name of which event id.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rtev/fxt_writer.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {

/// By key, which is StringId::pack() without `known`. When all slots are taken, they are used again in turn.
class StringTable {
 public:
  /// Fixed slots of the writer, from 1 on.
  static constexpr std::uint16_t slots = 32'000;

  explicit StringTable(FxtWriter& writer) : writer_(writer) { entries_.resize(1); }

  /// The slot of an id whose text was compared in this batch, or cannot change; empty if there is none.
  fxt::StringRef find(std::uint64_t key, std::uint64_t batch) const {
    const std::uint16_t slot = cache_[place(key)];
    const Entry& entry = entries_[slot];
    return entry.key == key && entry.checked_in >= batch ? fxt::StringRef{slot} : fxt::StringRef{};
  }

  /// Writes the text of an id unless its slot has it already. A text that may change is compared once in each batch.
  fxt::StringRef define(StringId id, std::string_view text, std::uint64_t batch, bool may_change);

 private:
  static constexpr std::uint64_t no_key = UINT64_MAX;
  struct Entry {
    std::uint64_t key = no_key;
    std::uint64_t checked_in = 0;  ///< batch
    std::string text{};            ///< if it may change; the first character says whether it is `known`
  };

  static std::size_t place(std::uint64_t key) { return key * 0x9E3779B97F4A7C15 >> 52; }

  std::uint16_t take_slot();

  FxtWriter& writer_;
  std::array<std::uint16_t, 4096> cache_{};
  std::vector<Entry> entries_;  ///< by slot
  std::unordered_map<std::uint64_t, std::uint16_t> by_key_;
  std::uint16_t next_ = 1;
};

}  // namespace rtev::record
