// SPDX-License-Identifier: MIT
// The thread table of a recording: which slot stands for which track and source.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "formats/viewer/trace_writer.hpp"
#include "rtev/fxt_writer.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {

/// A slot stands for a track and a source, because a track may show events of several sources. There are 255 slots; the
/// least recently used ones are used again.
class SourceThreads {
 public:
  explicit SourceThreads(FxtWriter& writer) : writer_(writer) {}

  /// The slot; it is written before its first use.
  fxt::ThreadRef of(std::uint32_t source, const Track& track) {
    const Key key{.source = source, .track = track.id};
    const std::uint8_t slot = cache_[place(key)];
    Entry& entry = entries_[slot];
    if (entry.key != key) [[unlikely]]
      return define(key, track);
    entry.used = true;
    return {slot};
  }

 private:
  struct Key {
    std::uint32_t source = 0, track = 0;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key{};
    bool taken = false, used = false;
  };

  static std::uint64_t bits(Key key) { return std::uint64_t{key.source} << 32 | key.track; }
  static std::size_t place(Key key) { return bits(key) * 0x9E3779B97F4A7C15 >> 54; }

  fxt::ThreadRef define(Key key, const Track& track);
  std::uint8_t take_slot();

  FxtWriter& writer_;
  std::array<std::uint8_t, 1024> cache_{};
  std::array<Entry, std::size_t{fxt::max_thread_slot} + 1> entries_{};  ///< by slot; 0 is not used
  std::unordered_map<std::uint64_t, std::uint8_t> by_key_;
  std::uint8_t next_ = 1;
};

}  // namespace rtev::record
