// SPDX-License-Identifier: MIT
#include "analysis/html_report/time_columns.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace rtev::test {
namespace {

struct CountedColumn {
  std::uint64_t count = 0;
  CountedColumn& operator+=(const CountedColumn& other) {
    count += other.count;
    return *this;
  }
};
using Columns = TimeColumns<CountedColumn>;

std::uint64_t sum_of(const Columns& columns) {
  const auto all = columns.columns();
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const CountedColumn& column) { return sum + column.count; });
}

TEST(TimeColumns, AreBoundedAndLoseNothing) {
  Columns columns;
  columns.begin(1000);
  constexpr std::uint64_t hour_ns = 3'600'000'000'000;
  for (std::uint64_t i = 0; i < 100'000; ++i) ++columns.at(1000 + i * (hour_ns / 100'000)).count;
  EXPECT_LE(columns.columns().size(), Columns::max_columns);
  EXPECT_GT(columns.columns().size(), Columns::max_columns / 2 - 1);
  EXPECT_EQ(sum_of(columns), 100'000u);
}

TEST(TimeColumns, ATimeBeforeTheBeginIsInTheFirst) {
  Columns columns;
  columns.begin(1'000'000'000);
  ++columns.at(5).count;
  EXPECT_EQ(columns.columns().front().count, 1u);
}

TEST(TimeColumns, TheEndOfAColumnIsInTheNextOne) {
  Columns columns;
  columns.begin(1000);
  EXPECT_EQ(columns.end_of(5), 1000u);
  EXPECT_EQ(columns.end_of(1000), 1'001'000u);
  EXPECT_EQ(columns.end_of(1'000'999), 1'001'000u);
  EXPECT_EQ(columns.end_of(1'001'000), 2'001'000u);
  EXPECT_GT(columns.end_of(UINT64_MAX - 1), UINT64_MAX - 1);
}

TEST(TimeColumns, AnyTimeHasAColumn) {
  Columns columns;
  ++columns.at(0).count;
  ++columns.at(UINT64_MAX).count;
  EXPECT_LE(columns.columns().size(), Columns::max_columns);
  EXPECT_EQ(sum_of(columns), 2u);
}

}  // namespace
}  // namespace rtev::test
