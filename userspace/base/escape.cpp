// SPDX-License-Identifier: MIT
#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/utf8.hpp"

namespace rtev {
namespace {

constexpr bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F);
}

/// Invisible characters that change how other text looks: bidirectional controls, zero width, line separators, tags.
constexpr bool is_deceptive(std::uint32_t code) {
  return code == 0xAD || code == 0x61C || (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB) ||
         (code >= 0xE0000 && code <= 0xE0FFF);
}

/// True if one of 8 ASCII characters is escaped by a notation here, or is not ASCII.
bool any_special(const char* text) {
  static constexpr std::uint64_t each = 0x0101'0101'0101'0101, high = each * 0x80;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, text, sizeof bytes);
  // The highest bit of a byte is set where it is below `limit`; wrong only above a byte that is.
  const auto below = [](std::uint64_t of, std::uint64_t limit) { return (of - each * limit) & ~of; };
  const auto equal = [&](char c) { return below(bytes ^ each * static_cast<unsigned char>(c), 1); };
  return ((below(bytes, 0x20) | equal('"') | equal('\\') | equal('\x7F') | bytes) & high) != 0;
}

/// Length of the prefix of ASCII characters that no notation here escapes.
std::size_t plain_prefix(std::string_view text) {
  static constexpr auto plain = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0x20; c < 0x7F; ++c) table[c] = c != '"' && c != '\\';
    return table;
  }();
  std::size_t length = 0;
  while (text.size() - length >= 8 && !any_special(text.data() + length)) length += 8;
  // The last 8 characters overlap with those that were looked at.
  if (text.size() - length < 8 && text.size() >= 8 && !any_special(text.data() + text.size() - 8)) return text.size();
  while (length < text.size() && plain[static_cast<unsigned char>(text[length])]) ++length;
  return length;
}

/// A character as it is shown on terminals.
struct Shown {
  std::array<char, 16> bytes;
  std::size_t size = 0;  ///< of bytes
  std::size_t columns = 0;
  std::size_t length = 0;  ///< bytes of input
  bool unchanged = false;

  std::string_view text() const { return {bytes.data(), size}; }
};

Shown show_first(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  const Character character = first_character(text);
  Shown shown;
  shown.length = character.length;
  const auto put = [&shown](char c) { shown.bytes[shown.size++] = c; };
  if (character.code == not_utf8 || is_control(character.code) || is_deceptive(character.code)) {
    for (const char c : text.substr(0, character.length)) {
      const auto byte = static_cast<unsigned char>(c);
      for (const char part : {'\\', 'x', digits[byte >> 4], digits[byte & 15]}) put(part);
    }
    shown.columns = shown.size;
    return shown;
  }
  if (character.code == '\\') put('\\');
  for (const char c : text.substr(0, character.length)) put(c);
  shown.columns = character.code == '\\' ? 2 : columns_of(character.code);
  shown.unchanged = character.code != '\\';
  return shown;
}

}  // namespace

void add_json_text(TextBuffer& out, std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  while (true) {
    const std::size_t plain = plain_prefix(text);
    out.add(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Character character = first_character(text);
    if (character.code == not_utf8) {
      out.add("\xEF\xBF\xBD");
    } else if (is_control(character.code)) {
      out.add("\\u00", digits[character.code >> 4], digits[character.code & 15]);
    } else {
      if (character.length == 1) out.add('\\');  // only quotes and backslashes are not plain
      out.add(text.substr(0, character.length));
    }
    text.remove_prefix(character.length);
  }
}

void add_json_string(TextBuffer& out, std::string_view text) {
  if (plain_prefix(text) == text.size()) {
    out.add_with(text.size() + 2, [&](char* at) {
      *at++ = '"';
      at += text.copy(at, text.size());
      *at++ = '"';
      return at;
    });
    return;
  }
  out.add('"');
  add_json_text(out, text);
  out.add('"');
}

void add_escaped(TextBuffer& out, std::string_view text) {
  while (true) {
    const std::size_t plain = plain_prefix(text);
    out.add(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const Shown shown = show_first(text);
    out.add(shown.text());
    text.remove_prefix(shown.length);
  }
}

std::string escaped(std::string_view text) {
  TextBuffer out;
  add_escaped(out, text);
  return std::string{out.text()};
}

std::string printable_message(std::string_view text) {
  TextBuffer out;
  while (true) {
    const std::size_t special = std::min(text.find_first_of("\n\t\\"), text.size());
    add_escaped(out, text.substr(0, special));
    if (special == text.size()) return std::string{out.text()};
    out.add(text[special]);
    text.remove_prefix(special + 1);
  }
}

void add_quoted(TextBuffer& out, std::string_view text) {
  out.add('"');
  for (std::size_t quote = text.find('"'); quote != std::string_view::npos; quote = text.find('"')) {
    add_escaped(out, text.substr(0, quote));
    out.add("\\\"");
    text.remove_prefix(quote + 1);
  }
  add_escaped(out, text);
  out.add('"');
}

void add_column(TextBuffer& out, std::string_view text, std::size_t width) {
  std::size_t left = width;
  while (!text.empty()) {
    const std::size_t plain = plain_prefix(text.substr(0, left));
    out.add(text.substr(0, plain));
    text.remove_prefix(plain);
    left -= plain;
    if (text.empty() || left == 0) break;
    const Shown shown = show_first(text);
    if (shown.columns > left) break;
    out.add(shown.text());
    text.remove_prefix(shown.length);
    left -= shown.columns;
  }
  out.add_repeated(' ', left);
}

bool is_printable(std::string_view text) {
  while (true) {
    text.remove_prefix(plain_prefix(text));
    if (text.empty()) return true;
    const Shown shown = show_first(text);
    if (!shown.unchanged) return false;
    text.remove_prefix(shown.length);
  }
}

}  // namespace rtev
