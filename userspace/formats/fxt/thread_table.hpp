// SPDX-License-Identifier: MIT
// The threads of a recording: which slot of the thread table stands for which track and source.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "formats/fxt/recording_layout.hpp"
#include "formats/viewer/trace_writer.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::record {

/// One track may show events of several sources, so a slot stands for both. There are 255; of those that were not used
/// for a while one is given away when a new one is needed.
class SourceThreads {
 public:
  explicit SourceThreads(FxtWriter& writer) : writer_(writer) {}

  /// Defined in the trace before it is used.
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
  std::array<Entry, std::size_t{fxt::max_thread_slot} + 1> entries_{};  ///< by slot; that of 0 is nobody's
  std::unordered_map<std::uint64_t, std::uint8_t> by_key_;
  std::uint8_t next_ = 1;
};

}  // namespace rtev::record
