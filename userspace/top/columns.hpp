// SPDX-License-Identifier: MIT
// The columns of the table of processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "top/interval.hpp"

namespace rtev::top {

struct Column {
  std::string_view title;
  std::string_view meaning;  ///< for help
  std::size_t width;         ///< of the longest cell, the blank before it not included
  bool is_text;              ///< aligned to the left
  unsigned rank;             ///< those of low rank are shown where there is little room
  std::string (*cell)(const ProcessFigures& process);
  /// What is sorted by, greatest first; null: the column cannot be sorted by.
  double (*value)(const ProcessFigures& process);
  /// From this value on a cell is marked by "!"; 0: never.
  double alarming;
};

/// From left to right.
std::span<const Column> all_columns();
/// Those that fit; among the first of them `always`, if that is not null.
std::vector<const Column*> columns_within(std::size_t width, const Column* always);
/// The column of a name as in --sort: its title in lower case without "%" and "/s".
const Column* column_named(std::string_view name);
std::string name_of(const Column& column);
/// Names of the columns that can be sorted by, the default first.
std::vector<std::string> sort_names();

/// The cell, with the mark.
std::string cell_of(const Column& column, const ProcessFigures& process);
bool is_alarming(const Column& column, const ProcessFigures& process);

/// Sorts by a column, greatest first; by pid if that is null or equal.
std::vector<const ProcessFigures*> sorted(std::vector<const ProcessFigures*> rows, const Column* by);

}  // namespace rtev::top
