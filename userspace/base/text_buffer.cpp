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

char* TextBuffer::put_hex(char* at, std::string_view bytes) {
  static constexpr auto pairs = [] {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte) table[byte] = {digits[byte / 16], digits[byte % 16]};
    return table;
  }();
  for (const char c : bytes) at = std::ranges::copy(pairs[static_cast<unsigned char>(c)], at).out;
  return at;
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
