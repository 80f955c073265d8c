// SPDX-License-Identifier: MIT
#include "base/text_buffer.hpp"

#include <algorithm>
#include <array>

namespace rtev {

void TextBuffer::grow(std::size_t count) {
  constexpr std::size_t smallest = 4096;
  bytes_.resize(std::max({smallest, bytes_.size() * 2, size_ + count}));
}

void TextBuffer::add_right(std::int64_t number, std::size_t width) {
  std::array<char, 20> digits;
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const auto length = static_cast<std::size_t>(end - digits.data());
  if (length < width) add_repeated(' ', width - length);
  add(std::string_view{digits.data(), length});
}

void TextBuffer::add_hex(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  char* at = extend(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    *at++ = digits[byte >> 4];
    *at++ = digits[byte & 15];
  }
}

void TextBuffer::add_grouped(std::uint64_t number) {
  std::array<char, 20> digits;
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string_view rest{digits.data(), static_cast<std::size_t>(end - digits.data())};
  const std::size_t first = (rest.size() - 1) % 3 + 1;
  add(rest.substr(0, first));
  for (rest.remove_prefix(first); !rest.empty(); rest.remove_prefix(3)) add(',', rest.substr(0, 3));
}

}  // namespace rtev
