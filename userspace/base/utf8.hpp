// SPDX-License-Identifier: MIT
// Characters of UTF-8 text, and the columns that they take on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rtev {

inline constexpr std::uint32_t not_utf8 = UINT32_MAX;

struct Character {
  std::uint32_t code;  ///< code point, or not_utf8
  std::size_t length;  ///< bytes; 1 for not_utf8
};

/// The first character of a text that is not empty. Overlong forms, surrogates and codes beyond U+10FFFF are not UTF-8.
Character first_character(std::string_view text);

/// 2 for wide characters (Unicode Standard Annex #11: East Asian Width W and F), 0 for marks that combine with the
/// character before them, else 1.
std::size_t columns_of(std::uint32_t code);
/// Of a text without control characters.
std::size_t columns_of(std::string_view text);

}  // namespace rtev
