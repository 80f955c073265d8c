// SPDX-License-Identifier: MIT
// Bounds-checked reading of the words and byte streams of a record.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "rtev/fxt.hpp"
#include "rtev/fxt_event.hpp"

namespace rtev::fxt {

/// A word at any address; words are little-endian.
inline std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = std::byteswap(word);
  return word;
}

/// The unread rest of a record or of an argument, in whole words. Functions that return false consume nothing.
class RecordCursor {
 public:
  RecordCursor() = default;
  explicit RecordCursor(std::span<const std::byte> words) : at_(words.data()), end_(words.data() + words.size()) {}

  std::size_t words_left() const { return static_cast<std::size_t>(end_ - at_) / word_bytes; }

  bool word(std::uint64_t& value) {
    if (at_ == end_) return false;
    value = load_word(at_);
    at_ += word_bytes;
    return true;
  }

  /// Bytes and the padding after them: see padded().
  bool stream(std::size_t size, std::span<const std::byte>& bytes) {
    const std::size_t words = detail::stream_words(size);
    if (words > words_left()) return false;
    bytes = {at_, size};
    at_ += words * word_bytes;
    return true;
  }
  /// True if the padding of the last stream() is zero.
  bool padded(std::size_t size) const {
    const std::size_t used = size % word_bytes;
    return used == 0 || load_word(at_ - word_bytes) >> used * 8 == 0;
  }

  /// The next words as a cursor of their own.
  bool part(std::size_t words, RecordCursor& cursor) {
    std::span<const std::byte> bytes;
    if (!stream(words * word_bytes, bytes)) return false;
    cursor = RecordCursor(bytes);
    return true;
  }

 private:
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

}  // namespace rtev::fxt
