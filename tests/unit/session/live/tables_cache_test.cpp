// SPDX-License-Identifier: MIT
#include "session/live/stacks/tables_cache.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "unwind/object_tables_format.hpp"

namespace rtev {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint32_t attacker = 1000, victim = 1001;
constexpr std::size_t mib = std::size_t{1} << 20;

constexpr MappedFile file_of(std::uint64_t inode) {
  return {.device = 1, .inode = inode, .changed_ns = 1};
}

/// Tables of this size, which say nothing.
UniqueFd tables_of(std::size_t bytes) {
  object_tables_format::Header header;
  header.magic = object_tables_format::magic;
  header.bytes = static_cast<std::uint32_t>(bytes);
  std::vector<std::byte> content(bytes);
  std::memcpy(content.data(), &header, sizeof header);
  UniqueFd memory(::memfd_create("tables", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::write(memory.get(), content.data(), bytes), static_cast<ssize_t>(bytes));
  EXPECT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  return memory;
}

TablesCache::Tables add(TablesCache& cache, std::uint64_t inode, std::uint32_t user, std::size_t bytes) {
  MappedCode code{.begin = 0, .end = 0, .offset = 0, .file = file_of(inode), .tables = tables_of(bytes)};
  return cache.add(code, user);
}

bool add_none(TablesCache& cache, std::uint64_t inode, std::uint32_t user) {
  MappedCode code{.begin = 0, .end = 0, .offset = 0, .file = file_of(inode), .has_none = true};
  cache.add(code, user);
  return cache.find(code.file, user).has_value();
}

TEST(TablesCache, OneUserCannotTakeAllRoom) {
  TablesCache cache;
  std::uint64_t inode = 0;
  // What no process runs is forgotten for the sake of what comes.
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(add_none(cache, ++inode, attacker));
  EXPECT_LE(cache.known_to(attacker).size(), 2048U);
  EXPECT_THAT(cache.known_to(victim), IsEmpty());
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(add_none(cache, ++inode, victim));
  EXPECT_LE(cache.known_to(victim).size(), 2048U);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(add_none(cache, ++inode, 0));
  EXPECT_GT(cache.known_to(0).size(), 4000U) << "root's programs may take all that others do not";
}

TEST(TablesCache, AFileWithAnotherContentIsAnotherOne) {
  TablesCache cache;
  MappedCode code{
      .begin = 0, .end = 0, .offset = 0, .file = {.device = 1, .inode = 2, .changed_ns = 3}, .has_none = true};
  cache.add(code, 0);
  EXPECT_TRUE(cache.find({.device = 1, .inode = 2, .changed_ns = 3}, 0));
  EXPECT_FALSE(cache.find({.device = 1, .inode = 2, .changed_ns = 4}, 0));
}

/// Whoever has used up his share runs the program of somebody else.
TEST(TablesCache, WhatIsRefusedToAUserIsNotRefusedToOthers) {
  TablesCache cache;
  const auto large = add(cache, 1, attacker, 15 * mib);
  ASSERT_TRUE(large);
  EXPECT_FALSE(add(cache, 2, attacker, 2 * mib));
  EXPECT_EQ(cache.left_out(), 1U);
  ASSERT_TRUE(cache.find(file_of(2), attacker)) << "it is not asked for each time";
  EXPECT_FALSE(*cache.find(file_of(2), attacker));
  EXPECT_THAT(cache.known_to(attacker), Contains(file_of(2)));

  EXPECT_FALSE(cache.find(file_of(2), victim));
  EXPECT_THAT(cache.known_to(victim), Not(Contains(file_of(2))));
  EXPECT_TRUE(add(cache, 2, victim, 2 * mib));
  EXPECT_TRUE(*cache.find(file_of(2), victim));
  EXPECT_FALSE(*cache.find(file_of(2), attacker));
  EXPECT_EQ(cache.left_out(), 1U);
}

/// Whoever keeps files mapped that somebody else has run does so at his own expense.
TEST(TablesCache, EachUserPaysForWhatHisProgramsRun) {
  TablesCache cache;
  std::vector<TablesCache::Tables> kept;
  for (const std::uint64_t inode : {1, 2}) {
    auto of_victim = add(cache, inode, victim, 7 * mib);
    ASSERT_TRUE(of_victim);
    kept.push_back(cache.find(file_of(inode), attacker).value());
    EXPECT_EQ(kept.back().get(), of_victim.get()) << "they are there once";
  }
  EXPECT_TRUE(add(cache, 3, victim, 12 * mib)) << "none of the victim's processes runs the first two any more";
  EXPECT_TRUE(kept.back()->bytes());
  EXPECT_FALSE(add(cache, 4, attacker, 4 * mib));
  kept.clear();
  EXPECT_TRUE(add(cache, 5, attacker, 12 * mib));
}

TEST(TablesCache, AUserWithoutRoomLeavesTheFilesOfOthersAlone) {
  TablesCache cache;
  add(cache, 1, victim, mib);
  const auto large = add(cache, 2, attacker, 15 * mib);
  add(cache, 3, attacker, mib / 2);
  EXPECT_TRUE(add(cache, 4, attacker, mib)) << "nobody runs the one before";
  EXPECT_FALSE(add(cache, 5, attacker, 2 * mib));
  EXPECT_TRUE(cache.find(file_of(1), victim));
  EXPECT_FALSE(cache.find(file_of(3), attacker));
}

TEST(TablesCache, WhatWasRefusedIsAskedForAgainOnceThereIsRoom) {
  TablesCache cache;
  auto large = add(cache, 1, attacker, 15 * mib);
  EXPECT_FALSE(add(cache, 2, attacker, 2 * mib));
  EXPECT_THAT(cache.known_to(attacker), Contains(file_of(2)));
  large = nullptr;
  EXPECT_THAT(cache.known_to(attacker), Not(Contains(file_of(2))));
  EXPECT_TRUE(add(cache, 2, attacker, 2 * mib));
}

TEST(TablesCache, AllUsersTogetherHaveALimit) {
  TablesCache cache;
  std::vector<TablesCache::Tables> kept;
  for (std::uint32_t user = 1; user <= 4; ++user) kept.push_back(add(cache, user, user, 16 * mib));
  EXPECT_TRUE(kept.back());
  EXPECT_FALSE(add(cache, 5, 5, mib));
  kept.pop_back();
  EXPECT_TRUE(add(cache, 6, 5, mib)) << "at the expense of what nobody runs";
  EXPECT_FALSE(cache.find(file_of(4), 4));
}

}  // namespace
}  // namespace rtev
