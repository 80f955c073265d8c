// SPDX-License-Identifier: MIT
// Programs that are left alone, by user.
#include "enable/suspects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "unit/enable/own_mounts.hpp"

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

/// Entries on disk, below a /run of its own.
class SuspectEntriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_mount()) GTEST_SKIP() << "mounts a file system";
  }
  static void with_own_run(const std::function<void()>& test) {
    with_own_mounts([&] {
      ASSERT_TRUE(mount_memory("/run"));
      test();
    });
  }
  static inline const std::filesystem::path directory = "/run/rtev-bpf/suspects";
};

TEST_F(SuspectEntriesTest, AreForLaterRuns) {
  with_own_run([] {
    EXPECT_FALSE(read_suspects().contains({.file = {1, 2}, .user = 1000})) << "there is no directory";
    for (int times = 0; times < 2; ++times) EXPECT_TRUE(note_suspect({.file = {1, 2}, .user = 1000}));
    const Suspects suspects = read_suspects();
    EXPECT_TRUE(suspects.contains({.file = {1, 2}, .user = 1000}));
    EXPECT_FALSE(suspects.contains({.file = {1, 2}, .user = 1001}));
    struct stat status{};
    ASSERT_EQ(::stat(suspects.entry_of({.file = {1, 2}, .user = 1000}).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777u, 0600u);
    ASSERT_EQ(::stat(directory.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777u, 0700u);
  });
}

TEST_F(SuspectEntriesTest, ThatAreNoneAreLeftOut) {
  with_own_run([] {
    ASSERT_TRUE(note_suspect({.file = {1, 2}, .user = 1000}));
    for (const char* name : {"", "1", "1-2", "1-2-", "1--7", "-1-2-7", "1-2-7-4", "1-2-7x", "x-2-7", "1-2-4294967303",
                             "18446744073709551617-2-7", "1-2- 7", "1-2-+7"})
      if (*name != '\0') std::ofstream(directory / name) << "x";
    const Suspects suspects = read_suspects();
    EXPECT_TRUE(suspects.contains({.file = {1, 2}, .user = 1000}));
    EXPECT_FALSE(suspects.contains({.file = {1, 2}, .user = 7}));
  });
}

TEST_F(SuspectEntriesTest, AreNotWrittenThroughALink) {
  with_own_run([] {
    std::filesystem::create_directories(directory);
    std::filesystem::create_symlink("/run/victim", directory / "1-2-1000");
    EXPECT_FALSE(note_suspect({.file = {1, 2}, .user = 1000}));
    EXPECT_FALSE(std::filesystem::exists("/run/victim"));
  });
}

TEST_F(SuspectEntriesTest, AreNotWrittenWhereOthersMayWrite) {
  with_own_run([] {
    std::filesystem::create_directories(directory);
    ASSERT_EQ(::chmod(directory.c_str(), 0777), 0);
    EXPECT_FALSE(note_suspect({.file = {1, 2}, .user = 1000}));
    std::filesystem::remove(directory);
    std::filesystem::create_directory("/run/planted");
    std::filesystem::create_symlink("/run/planted", directory);
    EXPECT_FALSE(note_suspect({.file = {1, 2}, .user = 1000}));
    EXPECT_TRUE(std::filesystem::is_empty("/run/planted"));
  });
}

TEST_F(SuspectEntriesTest, OfManyProgramsOfAUserBarNobodyElse) {
  with_own_run([] {
    for (std::uint64_t inode = 0; inode < 3 * Suspects::max_of_user; ++inode)
      ASSERT_TRUE(note_suspect({.file = {1, inode}, .user = 1000}));
    const Suspects suspects = read_suspects();
    EXPECT_TRUE(suspects.is_full(1000));
    EXPECT_FALSE(suspects.contains({.file = {1, 1}, .user = 1001}));
  });
}

}  // namespace
}  // namespace rtev::enable
