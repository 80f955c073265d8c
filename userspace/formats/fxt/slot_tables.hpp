// SPDX-License-Identifier: MIT
// The string and thread tables of a recording: which slot stands for which event id, and for which track and source.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/viewer/trace_writer.hpp"
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
    const Cached& cached = cache_[place(key)];
    return cached.key == key && cached.checked_in >= batch ? fxt::StringRef{cached.slot} : fxt::StringRef{};
  }

  /// Writes the text of an id unless its slot has it already. A text that may change is compared once in each batch.
  fxt::StringRef define(StringId id, std::string_view text, std::uint64_t batch, bool may_change);

 private:
  static constexpr std::uint64_t no_key = UINT64_MAX;
  struct Entry {
    std::uint64_t key = no_key;
    std::string text{};  ///< if it may change; the first character says whether it is `known`
  };
  struct Cached {
    std::uint64_t key = no_key;
    std::uint64_t checked_in = 0;  ///< batch
    std::uint16_t slot = 0;
  };

  static std::size_t place(std::uint64_t key) { return key * 0x9E3779B97F4A7C15 >> 54; }

  std::uint16_t take_slot();

  FxtWriter& writer_;
  std::array<Cached, 1024> cache_{};
  std::vector<Entry> entries_;  ///< by slot
  std::unordered_map<std::uint64_t, std::uint16_t> by_key_;
  std::uint16_t next_ = 1;
};

/// A slot stands for a track and a source, because a track may show events of several sources. There are 255 slots; the
/// least recently used ones are used again.
class SourceThreads {
 public:
  explicit SourceThreads(FxtWriter& writer) : writer_(writer) {}

  /// The slot; it is written before its first use.
  fxt::ThreadRef of(std::uint32_t source, const Track& track) {
    const std::uint64_t key = std::uint64_t{source} << 32 | track.id;
    const std::uint8_t slot = cache_[place(key)];
    Entry& entry = entries_[slot];
    if (entry.key != key) [[unlikely]]
      return define(key, track);
    entry.used = true;
    return {slot};
  }

 private:
  struct Entry {
    std::uint64_t key = 0;  ///< source and track
    bool taken = false, used = false;
  };

  static std::size_t place(std::uint64_t key) { return key * 0x9E3779B97F4A7C15 >> 54; }

  fxt::ThreadRef define(std::uint64_t key, const Track& track);
  std::uint8_t take_slot();

  FxtWriter& writer_;
  std::array<std::uint8_t, 1024> cache_{};
  std::array<Entry, std::size_t{fxt::max_thread_slot} + 1> entries_{};  ///< by slot; 0 is not used
  std::unordered_map<std::uint64_t, std::uint8_t> by_key_;
  std::uint8_t next_ = 1;
};

}  // namespace rtev::record
