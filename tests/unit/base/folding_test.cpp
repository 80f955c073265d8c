// SPDX-License-Identifier: MIT
#include "base/folding.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "base/utf8.hpp"

namespace rtev::test {
namespace {

TEST(Folding, ShortLinesStay) {
  EXPECT_EQ(folded("", 0, 0), "");
  EXPECT_EQ(folded("some words", 0, 4), "some words");
}

TEST(Folding, LinesFitAndAreIndented) {
  std::string text;
  for (int word = 0; word < 60; ++word) text += "µs" + std::to_string(word) + " ";
  text.pop_back();
  const std::string lines = folded(text, 10, 3);
  std::size_t first_column = 10;
  std::string words;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    EXPECT_LE(columns_of(line) + first_column, max_columns) << line;
    EXPECT_EQ(line.starts_with("   "), begin > 0) << line;
    words += (begin > 0 ? " " : "") + line.substr(begin > 0 ? 3 : 0);
    first_column = 0;
    begin = end + 1;
  }
  EXPECT_EQ(words, text);
}

TEST(Folding, WordsThatAreTooLongHaveALine) {
  const std::string word(150, 'x');
  EXPECT_EQ(folded("a " + word + " b", 0, 2), "a\n  " + word + "\n  b");
}

TEST(Cut, KeepsTheBeginning) {
  EXPECT_EQ(cut("long name", 9), "long name");
  EXPECT_EQ(cut("long name", 0), "long name");
  EXPECT_EQ(cut("länger name", 5), "läng…");
  EXPECT_EQ(cut("漢字の名前", 6), "漢字…");
}

TEST(Cut, CutsNothingWhereThereIsNoTerminal) {
  // The setting is for the rest of the process: of this one other tests follow.
  EXPECT_EXIT(
      {
        fit_terminal(0);
        const std::string name = "a long name";
        std::_Exit(cut(name, 3) == name && cut_middle(name, 5) == name ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Folding, FitsTheTerminal) {
  const std::string text = "all lines of a text are as long as the terminal allows, and not longer than it is wide";
  const auto longest_in = [&](std::size_t columns) {
    fit_terminal(columns);
    std::istringstream lines(folded(text, 0, 2));
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
  };
  // The setting is for the rest of the process.
  EXPECT_EXIT(std::_Exit(longest_in(50) <= 50 && longest_in(50) > 40 && longest_in(0) == text.size() &&
                                 text_columns() == max_columns && longest_in(3) <= 40
                             ? 0
                             : 1),
              testing::ExitedWithCode(0), "");
}

TEST(Cut, InTheMiddleKeepsBothEnds) {
  EXPECT_EQ(cut_middle("handler_1", 9), "handler_1");
  EXPECT_EQ(cut_middle("a_handler_with_a_name_12", 11), "a_han…me_12");
  EXPECT_EQ(cut_middle("ääääääääöö", 4), "ää…ö");
  EXPECT_EQ(cut_middle("漢字の名前", 7), "漢…前");
}

}  // namespace
}  // namespace rtev::test
