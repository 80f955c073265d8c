// SPDX-License-Identifier: MIT
// Programs that are left alone, by user.
#include "enable/suspects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rtev::enable {
namespace {

using ::testing::EndsWith;

TEST(SuspectsTest, AreOfOneUser) {
  Suspects suspects;
  EXPECT_TRUE(suspects.insert({.file = {1, 2}, .user = 1000}));
  EXPECT_FALSE(suspects.insert({.file = {1, 2}, .user = 1000}));
  EXPECT_TRUE(suspects.contains({.file = {1, 2}, .user = 1000}));
  EXPECT_FALSE(suspects.contains({.file = {1, 2}, .user = 1001}));
  EXPECT_FALSE(suspects.contains({.file = {1, 3}, .user = 1000}));
  EXPECT_THAT(suspects.entry_of({.file = {1, 2}, .user = 1000}), EndsWith("/1-2-1000"));
}

TEST(SuspectsTest, AreAllProgramsOfAUserWhoHasMany) {
  Suspects suspects;
  for (std::uint64_t inode = 0; inode < Suspects::max_of_user; ++inode)
    EXPECT_TRUE(suspects.insert({.file = {1, inode}, .user = 1000}));
  EXPECT_TRUE(suspects.is_full(1000));
  EXPECT_TRUE(suspects.contains({.file = {9, 9}, .user = 1000}));
  EXPECT_FALSE(suspects.insert({.file = {9, 9}, .user = 1000})) << "the list does not grow";
  EXPECT_THAT(suspects.entry_of({.file = {9, 9}, .user = 1000}), EndsWith("/*-1000"));
  EXPECT_FALSE(suspects.contains({.file = {1, 1}, .user = 0}));
}

}  // namespace
}  // namespace rtev::enable
