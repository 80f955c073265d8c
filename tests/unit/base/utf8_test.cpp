// SPDX-License-Identifier: MIT
#include "base/utf8.hpp"

#include <gtest/gtest.h>

namespace rtev::test {
namespace {

TEST(Utf8, ColumnsOfText) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("µs"), 2u);
  EXPECT_EQ(columns_of("漢字"), 4u);
  EXPECT_EQ(columns_of("한글 ＡＢ"), 9u);
  EXPECT_EQ(columns_of("🐫"), 2u);
  EXPECT_EQ(columns_of("e\u0301"), 1u) << "a letter and an accent that combines with it";
  EXPECT_EQ(columns_of("▁█…│"), 4u) << "what reports draw with";
}

TEST(Utf8, BytesThatAreNotUtf8AreCharactersOfOneByte) {
  EXPECT_EQ(columns_of("\xff\xe6\xbc"), 3u);
  EXPECT_EQ(first_character("\xc0\x80").length, 1u) << "an overlong form";
  EXPECT_EQ(first_character("\xc0\x80").code, not_utf8);
}

}  // namespace
}  // namespace rtev::test
