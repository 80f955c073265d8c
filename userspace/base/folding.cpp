// SPDX-License-Identifier: MIT
#include "base/folding.hpp"

#include <algorithm>

#include "base/text_buffer.hpp"

namespace rtev {
namespace {

constexpr std::string_view mark = "…";

/// Bytes of the first characters of a UTF-8 text.
std::size_t bytes_of_first(std::string_view text, std::size_t characters) {
  std::size_t size = 0, used = 0;
  const auto begins_character = [&](std::size_t at) { return (text[at] & 0xC0) != 0x80; };
  while (size < text.size() && (used < characters || !begins_character(size))) used += begins_character(size++);
  return size;
}

}  // namespace

std::string folded(std::string_view line, std::size_t column, std::size_t indent, std::size_t columns) {
  std::string out;
  bool is_first = true;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (!is_first && column + 1 + columns_of(word) > columns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns_of(word);
    is_first = false;
  }
  return out;
}

std::string cut(std::string_view text, std::size_t columns) {
  if (columns == 0 || columns_of(text) <= columns) return std::string(text);
  return std::string(text.substr(0, bytes_of_first(text, columns - 1))).append(mark);
}

std::string cut_middle(std::string_view text, std::size_t columns) {
  const std::size_t all = columns_of(text);
  if (all <= columns) return std::string(text);
  const std::size_t end = (columns - 1) / 2, begin = columns - 1 - end;
  std::string shown(text.substr(0, bytes_of_first(text, begin)));
  return shown.append(mark).append(text.substr(bytes_of_first(text, all - end)));
}

}  // namespace rtev
