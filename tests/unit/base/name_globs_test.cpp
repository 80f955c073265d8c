// SPDX-License-Identifier: MIT
#include "base/name_globs.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

TEST(NameGlobs, MatchWholeNames) {
  EXPECT_TRUE(matches_name("server", "server"));
  EXPECT_FALSE(matches_name("serve", "server"));
  EXPECT_FALSE(matches_name("erver", "server"));
  EXPECT_FALSE(matches_name("Server", "server"));
  EXPECT_FALSE(matches_name("", "server"));
  EXPECT_FALSE(matches_name("a-long-file-name", "a-long-file-nam")) << "a comm has at most 15 bytes";
}

TEST(NameGlobs, AreThoseOfTheShell) {
  EXPECT_TRUE(matches_name("ser*", "server"));
  EXPECT_TRUE(matches_name("*", ""));
  EXPECT_TRUE(matches_name("*", ".hidden/name")) << "a comm is no path";
  EXPECT_TRUE(matches_name("a?", "ab"));
  EXPECT_FALSE(matches_name("a?", "abc"));
  EXPECT_TRUE(matches_name("web[0-9]", "web7"));
  EXPECT_FALSE(matches_name("web[!0-9]", "web7"));
  EXPECT_TRUE(matches_name("a\\*", "a*"));
  EXPECT_FALSE(matches_name("a\\*", "ab"));
  EXPECT_TRUE(matches_name("*\n", "\xff\n")) << "not UTF-8";
}

TEST(NameGlobs, SelectWithOneThatMatches) {
  EXPECT_TRUE(selects_name({"batch", "ser*"}, "server"));
  EXPECT_FALSE(selects_name({"batch", "web*"}, "server"));
  EXPECT_TRUE(selects_name({}, "server"));
}

}  // namespace
}  // namespace rtev
