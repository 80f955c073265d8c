// SPDX-License-Identifier: MIT
#include "base/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rtev {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char padding = '=';
constexpr std::size_t group_bytes = 3, group_digits = 4;
constexpr std::uint8_t no_digit = 64;

constexpr auto digits = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + group_bytes - 1) / group_bytes * group_digits);
  for (std::size_t at = 0; at < bytes.size(); at += group_bytes) {
    const std::size_t count = std::min(group_bytes, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < group_bytes; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < group_digits; ++i) text += i <= count ? alphabet[group >> (18 - 6 * i) & 63] : padding;
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % group_digits != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / group_digits * group_bytes);
  for (std::size_t at = 0; at < text.size(); at += group_digits) {
    const bool is_last = at + group_digits == text.size();
    std::size_t count = group_digits;
    while (is_last && count > 2 && text[at + count - 1] == padding) --count;
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < group_digits; ++i) {
      const std::uint8_t digit = i < count ? digits[static_cast<unsigned char>(text[at + i])] : std::uint8_t{0};
      if (digit == no_digit) return std::nullopt;
      group = group << 6 | digit;
    }
    const std::size_t made = count - 1;
    if ((group & (0xFFFFFFU >> (8 * made))) != 0) return std::nullopt;
    for (std::size_t i = 0; i < made; ++i) bytes += static_cast<char>(group >> (16 - 8 * i) & 0xFF);
  }
  return bytes;
}

}  // namespace rtev
