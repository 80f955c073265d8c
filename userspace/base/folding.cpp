// SPDX-License-Identifier: MIT
#include "base/folding.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace rtev {
namespace {

constexpr std::string_view mark = "…";

constexpr std::size_t min_columns = 40;

std::size_t columns_of_line = max_columns;
bool keeps_whole = false;

/// Bytes of the first characters of a UTF-8 text, of those that fit into so many columns.
std::size_t bytes_of_first(std::string_view text, std::size_t columns) {
  std::size_t size = 0, used = 0;
  while (size < text.size()) {
    const Character character = first_character(text.substr(size));
    used += columns_of(character.code);
    if (used > columns) break;
    size += character.length;
  }
  return size;
}

/// Where the last characters begin, those that fit into so many columns.
std::size_t begin_of_last(std::string_view text, std::size_t columns) {
  const std::size_t all = columns_of(text);
  std::size_t begin = 0, before = 0;
  while (begin < text.size() && all - before > columns) {
    const Character character = first_character(text.substr(begin));
    before += columns_of(character.code);
    begin += character.length;
  }
  return begin;
}

}  // namespace

void fit_terminal(std::size_t columns) {
  keeps_whole = columns == 0;
  columns_of_line = keeps_whole ? max_columns : std::clamp(columns, min_columns, max_columns);
}

std::size_t text_columns() {
  return columns_of_line;
}

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
  if (keeps_whole || columns == 0 || columns_of(text) <= columns) return std::string(text);
  return std::string(text.substr(0, bytes_of_first(text, columns - 1))).append(mark);
}

std::string cut_middle(std::string_view text, std::size_t columns) {
  if (keeps_whole || columns_of(text) <= columns) return std::string(text);
  const std::size_t end = (columns - 1) / 2, begin = columns - 1 - end;
  std::string shown(text.substr(0, bytes_of_first(text, begin)));
  return shown.append(mark).append(text.substr(begin_of_last(text, end)));
}

}  // namespace rtev
