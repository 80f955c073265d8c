// SPDX-License-Identifier: MIT
// Base64 (RFC 4648, with padding), for data in pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rtev {

inline std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t value = 0;
    for (std::size_t byte = 0; byte < 3; ++byte)
      value = value << 8 | (byte < group.size() ? static_cast<std::uint8_t>(group[byte]) : 0);
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += digit <= group.size() ? digits[value >> (6 * (3 - digit)) & 63] : '=';
  }
  return text;
}

}  // namespace rtev
