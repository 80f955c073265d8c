// SPDX-License-Identifier: MIT
#include "support/terminal_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rtev::test {
namespace {

/// Length of the UTF-8 character at the front, 0 if there is none. Overlong forms and surrogates are not UTF-8.
std::size_t utf8_length(std::string_view text, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  if (length == 0) return 0;
  static constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  code = length == 1 ? lead : lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  return code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : length;
}

}  // namespace

std::string terminal_danger(std::string_view text, Deception deception) {
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t code = 0;
    const std::size_t length = utf8_length(text.substr(at), code);
    const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code <= 0x9F);
    const bool bidirectional = code == 0x61C || code == 0x200E || code == 0x200F ||
                               (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    if (length == 0 || control || (bidirectional && deception == Deception::refused)) {
      const std::size_t begin = at - std::min<std::size_t>(at, 40);
      std::string context(text.substr(begin, 80));
      std::ranges::replace_if(context, [](char c) { return c < ' ' || c == '\x7f'; }, '?');
      return length == 0
                 ? fmt::format("byte 0x{:02x} is not UTF-8, in '{}'", static_cast<unsigned char>(text[at]), context)
                 : fmt::format("U+{:04X} in '{}'", code, context);
    }
    at += length;
  }
  return {};
}

}  // namespace rtev::test
