// SPDX-License-Identifier: MIT
#include "base/base64.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace rtev::test {
namespace {

TEST(Base64, ExamplesOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string_view("\xff\xef\x00", 3)), "/+8A");
}

}  // namespace
}  // namespace rtev::test
