// SPDX-License-Identifier: MIT
// Tables for people: columns that line up whatever is in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_buffer.hpp"

namespace rtev {

/// Takes cells row by row, from the left to the right, and writes them when it is known how wide columns are: at least
/// two blanks lie between any two. A row may end early. Text is written as it stands: escape it first.
class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };

  /// `indent`: blanks before each line.
  explicit TextTable(std::size_t indent = 0) : indent_(indent) {}

  /// Columns from the first on, before any row. `least`: how far a column's end is from that of the one before, if what
  /// is in it takes no more.
  TextTable& column(std::string_view title, std::size_t least, Align align = Align::right);

  void row();
  void cell(std::string_view text = {}, bool marked = false);  ///< `marked`: a + stands behind it
  void cell(std::uint64_t number, bool marked = false);        ///< with a comma between thousands
  void duration(std::uint64_t ns);
  /// Of the row, two blanks behind its last cell.
  void remark(std::string_view text);
  /// A line that has no columns.
  void line(std::string_view text);

  void write(TextBuffer& out) const;

 private:
  struct Cell {
    std::string text;
    bool marked = false;
  };
  struct Row {
    std::vector<Cell> cells{};
    std::string rest{};  ///< remark, or the line
  };
  struct Column {
    std::size_t least;
    Align align;
  };

  std::vector<std::size_t> widths() const;
  void write(TextBuffer& out, const Row& row, const std::vector<std::size_t>& widths) const;

  std::size_t indent_;
  std::vector<Column> columns_;
  std::vector<Row> rows_{Row{}};  ///< titles first
};

}  // namespace rtev
