// SPDX-License-Identifier: MIT
// Text in lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rtev {

/// Columns of a line of help and of reports, at most.
inline constexpr std::size_t max_columns = 100;

/// From now on texts are for a terminal of so many columns. 0: for none, and cut() and cut_middle() return whole texts.
void fit_terminal(std::size_t columns);

/// Columns of a line: those of the terminal, from 40 to max_columns; max_columns where there is no terminal.
std::size_t text_columns();

/// The words of a line in lines of at most `columns`, where no word is longer. `column`: of the first word; further
/// lines are indented by `indent`.
std::string folded(std::string_view line, std::size_t column, std::size_t indent, std::size_t columns = text_columns());

/// The beginning of a UTF-8 text that takes at most so many columns, with a mark where the rest is missing. 0: all.
std::string cut(std::string_view text, std::size_t columns);

/// The same without the middle, where long names differ least. `columns`: 3 at least.
std::string cut_middle(std::string_view text, std::size_t columns);

}  // namespace rtev
