// SPDX-License-Identifier: MIT
#include "formats/output/free_space.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

TEST(FreeSpace, IsLowBelowAShareOrANumberOfBytes) {
  const DiskSpace space{.size = 1000, .available = 50};
  EXPECT_FALSE(is_low(space, {.share = 0.05}));
  EXPECT_TRUE(is_low(space, {.share = 0.06}));
  EXPECT_FALSE(is_low(space, {.bytes = 50}));
  EXPECT_TRUE(is_low(space, {.bytes = 51}));
  EXPECT_FALSE(is_low({.size = 1000, .available = 0}, {})) << "no floor";
  EXPECT_FALSE(is_low({}, {.share = 1})) << "a file system that does not know its size";
}

TEST(FreeSpace, IsUnknownForAClosedFile) {
  EXPECT_EQ(space_of(-1).size, 0u);
}

}  // namespace
}  // namespace rtev
