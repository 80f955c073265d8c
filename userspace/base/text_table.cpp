// SPDX-License-Identifier: MIT
#include "base/text_table.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "base/utf8.hpp"

namespace rtev {
namespace {

constexpr std::size_t gap = 2;

}  // namespace

TextTable& TextTable::column(std::string_view title, std::size_t least, Align align) {
  columns_.push_back({.least = least, .align = align});
  rows_.front().cells.push_back({.text = std::string{title}});
  return *this;
}

void TextTable::row() {
  rows_.emplace_back();
}

void TextTable::cell(std::string_view text, bool marked) {
  rows_.back().cells.push_back({.text = std::string{text}, .marked = marked});
}

void TextTable::cell(std::uint64_t number, bool marked) {
  TextBuffer text;
  text.add_grouped(number);
  cell(text.text(), marked);
}

void TextTable::duration(const std::optional<std::uint64_t>& ns) {
  if (!ns) return cell("-");
  TextBuffer text;
  add_duration(text, *ns);
  cell(text.text());
}

void TextTable::remark(std::string_view text) {
  rows_.back().rest = text;
}

void TextTable::line(std::string_view text) {
  rows_.push_back({.rest = std::string{text}});
}

/// Widths of the columns, each from the end of the previous column, with the marks of that column.
std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_[i].least;
    for (const Row& row : rows_) {
      if (i >= row.cells.size()) continue;
      const std::size_t before = i == 0 ? 0 : gap + (row.cells[i - 1].marked ? 1 : 0);
      width = std::max(width, before + columns_of(row.cells[i].text));
    }
    widths.push_back(width);
  }
  return widths;
}

void TextTable::write(TextBuffer& out, const Row& row, const std::vector<std::size_t>& widths) const {
  std::size_t blanks = indent_;  // written only before further text: no blanks at the end of a line
  bool marked = false;
  const auto add = [&](const Cell& cell) {
    if (cell.text.empty()) return;
    out.add_repeated(' ', blanks);
    out.add(cell.text);
    if (cell.marked) out.add('+');
    blanks = 0;
  };
  for (std::size_t i = 0; i < row.cells.size() && i < widths.size(); ++i) {
    const Cell& cell = row.cells[i];
    const std::size_t free = widths[i] - columns_of(cell.text) - (marked ? 1 : 0);
    const std::size_t before = columns_[i].align == Align::right ? free : std::min(free, i == 0 ? 0 : gap);
    blanks += before;
    add(cell);
    blanks += free - before;
    marked = cell.marked;
  }
  if (!row.rest.empty()) {
    out.add_repeated(' ', row.cells.empty() ? indent_ : gap);
    out.add(row.rest);
  }
  out.add('\n');
}

void TextTable::write(TextBuffer& out) const {
  const auto wide = widths();
  for (const Row& row : rows_) write(out, row, wide);
}

}  // namespace rtev
