// SPDX-License-Identifier: MIT
// Tables whose columns line up.
#include "base/text_table.hpp"

#include <gtest/gtest.h>

namespace rtev::test {
namespace {

constexpr auto left = TextTable::Align::left;

std::string text_of(const TextTable& table) {
  TextBuffer out;
  table.write(out);
  return std::string{out.text()};
}

TEST(TextTable, ColumnsHaveAMinimumWidth) {
  TextTable table{2};
  table.column("NAME", 8, left).column("COUNT", 9).column("TIME", 8);
  table.row();
  table.cell("a");
  table.cell(1);
  table.duration(1'230);
  EXPECT_EQ(text_of(table),
            "  NAME        COUNT    TIME\n"
            "  a               1  1.23µs\n");
}

TEST(TextTable, WideCellsKeepTwoBlanksAwayFromMarks) {
  TextTable table;
  table.column("A", 0).column("B", 0).column("C", 0);
  table.row();
  table.cell(176, true);
  table.cell(1'553'822, true);
  table.cell(7);
  table.row();
  table.cell(1);
  table.cell(2);
  table.cell(3);
  EXPECT_EQ(text_of(table),
            "  A           B   C\n"
            "176+  1,553,822+  7\n"
            "  1           2   3\n");
}

TEST(TextTable, AWideTitleWidensItsColumn) {
  TextTable table;
  table.column("A", 0).column("LONG TITLE", 4);
  table.row();
  table.cell(1, true);
  table.cell(2);
  EXPECT_EQ(text_of(table), "A  LONG TITLE\n1+          2\n");
}

TEST(TextTable, NoBlanksAtTheEndOfALine) {
  TextTable table;
  table.column("A", 6, left).column("B", 6, left).column("C", 6);
  table.row();
  table.cell("x");
  table.row();
  table.cell("x");
  table.cell("y");
  table.cell();
  table.row();
  EXPECT_EQ(text_of(table), "A       B        C\nx\nx       y\n\n");
}

TEST(TextTable, RemarksFollowTheirRow) {
  TextTable table{1};
  table.column("A", 3).column("B", 3);
  table.row();
  table.cell(1);
  table.cell(2, true);
  table.remark("!");
  table.line("and more");
  table.row();
  table.cell();
  table.cell("3");
  EXPECT_EQ(text_of(table),
            "   A  B\n"
            "   1  2+  !\n"
            " and more\n"
            "      3\n");
}

}  // namespace
}  // namespace rtev::test
