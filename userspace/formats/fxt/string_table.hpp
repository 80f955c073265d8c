// SPDX-License-Identifier: MIT
// The names of a recording: which slot of the string table stands for which id.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/fxt/recording_layout.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::record {

/// Words by key, which is StringId::pack() of one that is not `known`. Slots are used in turns once all are taken.
class StringTable {
 public:
  /// Fixed slots of the writer, beginning with 1.
  static constexpr std::uint16_t slots = 32'000;

  explicit StringTable(FxtWriter& writer) : writer_(writer) { entries_.resize(1); }

  /// The slot of a word that was told, and whose text was made sure of in this batch; else empty.
  fxt::StringRef find(std::uint64_t key, std::uint64_t batch) const {
    const std::uint16_t slot = cache_[place(key)];
    const Entry& entry = entries_[slot];
    return entry.key == key && entry.checked_in >= batch ? fxt::StringRef{slot} : fxt::StringRef{};
  }

  /// Tells a word, unless it is known with this text. Of one that may change its text it has to be made sure in each
  /// batch.
  fxt::StringRef define(StringId id, std::string_view text, std::uint64_t batch, bool may_change);

 private:
  static constexpr std::uint64_t no_key = UINT64_MAX;
  struct Entry {
    std::uint64_t key = no_key;
    std::uint64_t checked_in = 0;  ///< batch
    std::string text{};            ///< of a word that may change it, with a mark in front
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
