// SPDX-License-Identifier: MIT
#include "session/live/stacks/tables_cache.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

bool add(TablesCache& cache, std::uint64_t inode, std::uint32_t user) {
  MappedCode code{.begin = 0, .end = 0, .offset = 0, .file = {.device = 1, .inode = inode}, .has_none = true};
  cache.add(code, user);
  return cache.find(code.file).has_value();
}

TEST(TablesCache, OneUserCannotTakeAllRoom) {
  TablesCache cache;
  std::uint64_t inode = 0;
  // What no process runs is forgotten for the sake of what comes.
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(add(cache, ++inode, 1000));
  EXPECT_LE(cache.files().size(), 2048U);
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(add(cache, ++inode, 1001));
  EXPECT_LE(cache.files().size(), 2U * 2048U);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(add(cache, ++inode, 0));
  EXPECT_GT(cache.files().size(), 5000U) << "root's programs may take all";
}

TEST(TablesCache, AFileWithAnotherContentIsAnotherOne) {
  TablesCache cache;
  MappedCode code{
      .begin = 0, .end = 0, .offset = 0, .file = {.device = 1, .inode = 2, .changed_ns = 3}, .has_none = true};
  cache.add(code, 0);
  EXPECT_TRUE(cache.find({.device = 1, .inode = 2, .changed_ns = 3}));
  EXPECT_FALSE(cache.find({.device = 1, .inode = 2, .changed_ns = 4}));
}

}  // namespace
}  // namespace rtev
