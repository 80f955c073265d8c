// SPDX-License-Identifier: MIT
// A buffer for text. Formatting is the hot path of the text sinks: appending is inline, and allocates only until the
// buffer has reached its working size.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace rtev {

class TextBuffer {
 public:
  /// Appends each part: a character, an integer in decimal, or text.
  template <typename... Parts>
  void add(const Parts&... parts) {
    (add_one(parts), ...);
  }

  void add_repeated(char c, std::size_t count) {
    if (count > 0) std::memset(extend(count), c, count);
  }
  /// Right-aligned in at least `width` columns.
  void add_right(std::int64_t number, std::size_t width);
  /// Two lower-case hex digits per byte.
  void add_hex(std::string_view bytes) { put_hex(extend(bytes.size() * 2), bytes); }
  /// The same, at a place with room for it.
  static char* put_hex(char* at, std::string_view bytes);
  /// With a comma between thousands.
  void add_grouped(std::uint64_t number);

  /// Appends what `write` writes: it gets a place with room for `most` bytes, and returns the end of what it wrote. One
  /// check of the room for several parts.
  template <typename Write>
  void add_with(std::size_t most, Write&& write) {
    if (bytes_.size() - size_ < most) grow(most);
    char* const begin = bytes_.data() + size_;
    size_ += static_cast<std::size_t>(write(begin) - begin);
  }
  /// Appends `count` bytes, which the caller must write.
  char* extend(std::size_t count) {
    if (bytes_.size() - size_ < count) grow(count);
    size_ += count;
    return bytes_.data() + (size_ - count);
  }

  std::string_view text() const { return {bytes_.data(), size_}; }
  std::size_t size() const { return size_; }
  char* data() { return bytes_.data(); }
  void clear() { size_ = 0; }
  /// Removes all bytes from this one on.
  void cut(std::size_t size) { size_ = size; }

 private:
  void add_one(char c) { *extend(1) = c; }
  void add_one(std::string_view text) {
    if (!text.empty()) std::memcpy(extend(text.size()), text.data(), text.size());
  }
  template <std::integral Number>
    requires(!std::same_as<Number, char> && !std::same_as<Number, bool>)
  void add_one(Number number) {
    constexpr std::size_t longest = 20;  // digits of UINT64_MAX, or sign and digits of INT64_MIN
    add_with(longest, [&](char* at) { return std::to_chars(at, at + longest, number).ptr; });
  }

  void grow(std::size_t count);

  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

}  // namespace rtev
