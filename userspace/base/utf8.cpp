// SPDX-License-Identifier: MIT
#include "base/utf8.hpp"

#include <algorithm>
#include <array>

namespace rtev {
namespace {

struct Codes {
  std::uint32_t first, last;
};

// Sorted. EastAsianWidth.txt of Unicode 16, W and F; neighbours that lie in one block are joined.
constexpr std::array wide{
    Codes{0x1100, 0x115F},   Codes{0x231A, 0x231B},   Codes{0x2329, 0x232A},   Codes{0x23E9, 0x23EC},
    Codes{0x25FD, 0x25FE},   Codes{0x2614, 0x2615},   Codes{0x2648, 0x2653},   Codes{0x2E80, 0x303E},
    Codes{0x3041, 0x4DBF},   Codes{0x4E00, 0xA4CF},   Codes{0xA960, 0xA97C},   Codes{0xAC00, 0xD7A3},
    Codes{0xF900, 0xFAFF},   Codes{0xFE10, 0xFE19},   Codes{0xFE30, 0xFE6B},   Codes{0xFF01, 0xFF60},
    Codes{0xFFE0, 0xFFE6},   Codes{0x16FE0, 0x18D08}, Codes{0x1B000, 0x1B2FB}, Codes{0x1F18E, 0x1F18E},
    Codes{0x1F191, 0x1F19A}, Codes{0x1F200, 0x1F320}, Codes{0x1F32D, 0x1F335}, Codes{0x1F337, 0x1F37C},
    Codes{0x1F37E, 0x1F393}, Codes{0x1F3A0, 0x1F3CA}, Codes{0x1F3E0, 0x1F3F0}, Codes{0x1F3F8, 0x1F43E},
    Codes{0x1F440, 0x1F440}, Codes{0x1F442, 0x1F4FC}, Codes{0x1F4FF, 0x1F53D}, Codes{0x1F550, 0x1F567},
    Codes{0x1F5FB, 0x1F64F}, Codes{0x1F680, 0x1F6C5}, Codes{0x1F6D0, 0x1F6D2}, Codes{0x1F6EB, 0x1F6EC},
    Codes{0x1F6F4, 0x1F6FC}, Codes{0x1F7E0, 0x1F7EB}, Codes{0x1F90C, 0x1F9FF}, Codes{0x1FA70, 0x1FAF8},
    Codes{0x20000, 0x3FFFD},
};

// Sorted. Of the general categories Mn and Me those blocks that are for combining marks.
constexpr std::array combining{
    Codes{0x0300, 0x036F}, Codes{0x0483, 0x0489}, Codes{0x0591, 0x05BD}, Codes{0x064B, 0x065F}, Codes{0x1AB0, 0x1AFF},
    Codes{0x1DC0, 0x1DFF}, Codes{0x20D0, 0x20FF}, Codes{0xFE00, 0xFE0F}, Codes{0xFE20, 0xFE2F},
};

template <std::size_t count>
bool is_in(const std::array<Codes, count>& sorted, std::uint32_t code) {
  const auto after = std::ranges::upper_bound(sorted, code, {}, &Codes::first);
  return after != sorted.begin() && code <= std::prev(after)->last;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return {not_utf8, 1};
  std::uint32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {not_utf8, 1};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {not_utf8, 1};
  return {code, length};
}

std::size_t columns_of(std::uint32_t code) {
  if (code < combining.front().first) return 1;
  if (is_in(combining, code)) return 0;
  return is_in(wide, code) ? 2 : 1;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    columns += columns_of(character.code);
    text.remove_prefix(character.length);
  }
  return columns;
}

}  // namespace rtev
