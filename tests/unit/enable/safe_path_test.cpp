// SPDX-License-Identifier: MIT
// Directories that others can replace or write to are not opened.
#include "enable/safe_path.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/temp_dir.hpp"

namespace rtev::enable {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t path_user = 12345, path_attacker = 54321;

class SafePathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "makes files of other users, which takes root";
    make("", path_user, 0755);
  }
  /// A directory below that of the test.
  void make(const fs::path& path, uid_t owner, mode_t mode) const {
    fs::create_directories(dir_ / path);
    ASSERT_EQ(::chown((dir_ / path).c_str(), owner, owner), 0);
    ASSERT_EQ(::chmod((dir_ / path).c_str(), mode), 0);
  }
  void link(const fs::path& target, const fs::path& path, uid_t owner) const {
    fs::create_symlink(target, dir_ / path);
    ASSERT_EQ(::lchown((dir_ / path).c_str(), owner, owner), 0);
  }
  auto open(const std::string& path) const {
    MountTables mounts;
    const UniqueFd root(::open(path.starts_with("/") ? "/" : dir_.path().c_str(), O_PATH | O_CLOEXEC));
    return SafePath(credentials_, ::getpid(), mounts).open(root, path);
  }
  std::string insecure(const std::string& path) const {
    const auto opened = open(path);
    return opened ? "opened" : opened.error().insecure;
  }
  static bool is_same(const SafeDirectory& directory, const fs::path& path) {
    struct stat first{}, second{};
    return ::fstat(directory.fd(), &first) == 0 && ::stat(path.c_str(), &second) == 0 && first.st_ino == second.st_ino;
  }

  test::TempDir dir_;
  Credentials credentials_{.user = path_user, .group = path_user};
};

TEST_F(SafePathTest, OpensDirectoriesOfTheUserAndOfRoot) {
  make("of_root", 0, 0755);
  make("of_root/of_user", path_user, 0700);
  const auto opened = open("of_root/of_user");
  ASSERT_TRUE(opened) << opened.error().insecure;
  EXPECT_TRUE(is_same(*opened, dir_ / "of_root/of_user"));
  EXPECT_TRUE(open(""));
  EXPECT_TRUE(open((dir_ / "of_root").native()));
}

TEST_F(SafePathTest, OpensASharedDirectoryThatIsSticky) {
  make("shared", 0, 01777);
  EXPECT_TRUE(open("shared"));
  make("shared/own", path_user, 0700);
  EXPECT_TRUE(open("shared/own"));
}

TEST_F(SafePathTest, RefusesWhatOthersOwn) {
  make("of_attacker", path_attacker, 0755);
  make("of_attacker/of_user", path_user, 0755);
  EXPECT_THAT(insecure("of_attacker"), HasSubstr("belongs to user 54321"));
  EXPECT_THAT(insecure("of_attacker/of_user"), HasSubstr("belongs to user 54321"));
}

TEST_F(SafePathTest, RefusesWhereOthersMayWrite) {
  make("of_group", path_user, 0775);
  make("of_all", path_user, 0757);
  make("of_all/of_user", path_user, 0700);
  EXPECT_THAT(insecure("of_group"), HasSubstr("group or others may write"));
  EXPECT_THAT(insecure("of_all"), HasSubstr("group or others may write"));
  EXPECT_THAT(insecure("of_all/of_user"), HasSubstr("group or others may write"));
}

TEST_F(SafePathTest, FollowsLinksOfTheUserAndOfRootOnly) {
  make("place", path_user, 0755);
  make("shared", 0, 01777);
  link("../place", "shared/of_user", path_user);
  link("../place", "shared/of_root", 0);
  link("../place", "shared/of_attacker", path_attacker);
  EXPECT_TRUE(open("shared/of_user"));
  EXPECT_TRUE(open("shared/of_root"));
  EXPECT_THAT(insecure("shared/of_attacker"), HasSubstr("a link on the way to it belongs to user 54321"));
}

TEST_F(SafePathTest, ChecksWhereALinkLeads) {
  make("of_attacker", path_attacker, 0755);
  link("of_attacker", "link", path_user);
  link((dir_ / "of_attacker").native(), "absolute", path_user);
  EXPECT_THAT(insecure("link"), HasSubstr("belongs to user 54321"));
  EXPECT_THAT(insecure((dir_ / "absolute").native()), HasSubstr("belongs to user 54321"));
}

TEST_F(SafePathTest, DoesNotLeaveTheRootDirectory) {
  make("place", path_user, 0755);
  link("/", "away", path_user);
  for (const char* path : {"place/..", "..", "away"}) {
    const auto opened = open(path);
    ASSERT_TRUE(opened) << path;
    EXPECT_TRUE(is_same(*opened, dir_.path())) << path;
  }
}

TEST_F(SafePathTest, EndsWhereLinksGoInCircles) {
  link("second", "first", path_user);
  link("first", "second", path_user);
  EXPECT_EQ(open("first").error().code, ELOOP);
}

TEST_F(SafePathTest, OpensNoFile) {
  ASSERT_TRUE(UniqueFd(::open((dir_ / "file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
  ASSERT_EQ(::chown((dir_ / "file").c_str(), path_user, path_user), 0);
  EXPECT_EQ(open("file").error().code, ENOTDIR);
  EXPECT_EQ(open("none").error().code, ENOENT);
}

TEST_F(SafePathTest, StaysWhereItWasOpenedWhenTheDirectoryIsReplaced) {
  make("place", path_user, 0755);
  make("of_attacker", path_attacker, 0755);
  const auto opened = open("place");
  ASSERT_TRUE(opened);
  fs::rename(dir_ / "place", dir_ / "moved");
  link("of_attacker", "place", path_attacker);
  EXPECT_TRUE(is_same(*opened, dir_ / "moved"));
  EXPECT_THAT(insecure("place"), HasSubstr("belongs to user 54321"));
}

TEST_F(SafePathTest, LooksAtTheWayThatItCame) {
  make("way", path_user, 0755);
  make("way/place", path_user, 0755);
  const auto opened = open("way/place");
  ASSERT_TRUE(opened);
  const auto obstacle = [&] {
    const auto own_user = static_cast<uid_t>(::setfsuid(path_user));
    const int code = opened->obstacle();
    ::setfsuid(own_user);
    return code;
  };
  EXPECT_EQ(obstacle(), 0);
  // The name leads to a directory where the user may go; the one that was opened is closed to him.
  fs::rename(dir_ / "way", dir_ / "moved");
  make("way/place", path_user, 0755);
  make("moved", 0, 0700);
  EXPECT_EQ(obstacle(), EACCES);
}

TEST_F(SafePathTest, TakesTheRootOfTheUserNamespaceForOneOfTheTrusted) {
  make("of_namespace", path_attacker, 0755);
  credentials_.namespace_root = path_attacker;
  EXPECT_TRUE(open("of_namespace"));
}

TEST_F(SafePathTest, ComesBackToTheDirectoryThatItChecked) {
  make("first", path_user, 0755);
  make("second", path_user, 0755);
  link("../second", "first/link", path_user);
  const auto opened = open("first/link/../first");
  ASSERT_TRUE(opened) << opened.error().insecure;
  EXPECT_TRUE(is_same(*opened, dir_ / "first"));
}

TEST_F(SafePathTest, IsNotOpenedAboveItsRoot) {
  make("place", path_user, 0755);
  MountTables mounts;
  const UniqueFd root(::open((dir_ / "place").c_str(), O_PATH | O_CLOEXEC));
  const auto opened = SafePath(credentials_, ::getpid(), mounts).open(root, "/../../..");
  ASSERT_TRUE(opened);
  EXPECT_TRUE(is_same(*opened, dir_ / "place"));
}

}  // namespace
}  // namespace rtev::enable
