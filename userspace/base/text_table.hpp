// SPDX-License-Identifier: MIT
// Tables with aligned columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_buffer.hpp"

namespace rtev {

/// Collects cells row by row, from left to right, and writes them all when the widths of the columns are known. There
/// are at least two blanks between columns. Rows can end early. Text must be escaped already.
class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };

  /// `indent`: blanks before each line.
  explicit TextTable(std::size_t indent = 0) : indent_(indent) {}

  /// Adds a column; before the first row. `least`: minimum distance of the column's end from that of the previous one.
  TextTable& column(std::string_view title, std::size_t least, Align align = Align::right);

  void row();
  void cell(std::string_view text = {}, bool marked = false);  ///< `marked`: followed by a +
  void cell(std::uint64_t number, bool marked = false);        ///< with a comma between thousands
  void duration(const std::optional<std::uint64_t>& ns);       ///< "-" if it is unknown
  /// Text two blanks after the last cell of the row.
  void remark(std::string_view text);
  /// A line without columns.
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
