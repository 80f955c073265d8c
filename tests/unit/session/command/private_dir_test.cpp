// SPDX-License-Identifier: MIT
#include "session/command/private_dir.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

class PrivateDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", base.path().c_str(), 1);
  }
  void TearDown() override {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }

  static std::optional<ProcessView> no_processes(const ProcessQuery&) { return ProcessView(); }
  static PrivateDir create(const std::optional<SudoUser>& owner = {}) {
    auto directory = PrivateDir::create(owner, no_processes);
    if (!directory) throw std::runtime_error(directory.error().message());
    return std::move(*directory);
  }
  const SudoUser nobody{.uid = 65534, .gid = 65533, .name = "nobody", .home = "/", .groups = {}};

  static void put_file(const fs::path& path) { std::ofstream(path) << "content"; }

  TempDir base;

 private:
  std::optional<std::string> before_;
};

TEST_F(PrivateDirTest, IsPrivateAndRemovedWithItsFiles) {
  fs::path path;
  {
    const PrivateDir directory = create();
    path = directory.path();
    EXPECT_EQ(path.parent_path(), base.path());
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u);
    for (int i = 0; i < 500; ++i) put_file(path / (std::to_string(i) + ".events"));
  }
  EXPECT_FALSE(fs::exists(path)) << "with more files than one read of the directory yields";
}

TEST_F(PrivateDirTest, BelongsToTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root acts for other users";
  ASSERT_EQ(::chmod(base.path().c_str(), 01777), 0);
  const PrivateDir directory = create(nobody);
  struct stat status{};
  ASSERT_EQ(::stat(directory.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 65534u);
  EXPECT_EQ(status.st_gid, 65533u);
}

TEST_F(PrivateDirTest, MayInheritTheGroupOfItsParent) {
  ASSERT_EQ(::chmod(base.path().c_str(), 02777), 0);
  const PrivateDir directory = create();
  struct stat status{};
  ASSERT_EQ(::stat(directory.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(PrivateDirTest, IsNotCreatedWhereTheUserMayNotWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root acts for other users";
  ASSERT_EQ(::chmod(base.path().c_str(), 0755), 0);
  const auto directory = PrivateDir::create(nobody, no_processes);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, EACCES);
  EXPECT_TRUE(fs::is_empty(base.path()));
}

TEST_F(PrivateDirTest, LinksAreRemovedNotFollowed) {
  fs::create_directory(base / "precious");
  put_file(base / "precious/file");
  fs::path path;
  {
    const PrivateDir directory = create();
    path = directory.path();
    fs::create_symlink(base / "precious", path / "folder");
    fs::create_symlink(base / "precious/file", path / "file");
    fs::create_hard_link(base / "precious/file", path / "hard");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(base / "precious/file"));
}

TEST_F(PrivateDirTest, SubfoldersStay) {
  fs::path path;
  {
    const PrivateDir directory = create();
    path = directory.path();
    fs::create_directory(path / "folder");
    put_file(path / "folder/file");
    put_file(path / "1.events");
  }
  EXPECT_TRUE(fs::exists(path / "folder/file"));
  EXPECT_FALSE(fs::exists(path / "1.events"));
}

TEST_F(PrivateDirTest, ADirectoryThatReplacesItStays) {
  fs::path path;
  {
    const PrivateDir directory = create();
    path = directory.path();
    put_file(path / "1.events");
    fs::rename(path, base / "moved");
    fs::create_directory(path);
    put_file(path / "foreign");
  }
  EXPECT_TRUE(fs::exists(path / "foreign"));
  EXPECT_TRUE(fs::is_empty(base / "moved")) << "our files are found where they went";
}

TEST_F(PrivateDirTest, ALinkThatReplacesItIsNotFollowed) {
  fs::create_directory(base / "precious");
  fs::path path;
  {
    const PrivateDir directory = create();
    path = directory.path();
    fs::rename(path, base / "moved");
    fs::create_directory_symlink(base / "precious", path);
  }
  EXPECT_TRUE(fs::exists(base / "precious"));
  EXPECT_TRUE(fs::is_symlink(path));
}

TEST_F(PrivateDirTest, CanBeRemovedTwice) {
  const PrivateDir directory = create();
  put_file(fs::path(directory.path()) / "1.events");
  directory.remove();
  EXPECT_FALSE(fs::exists(directory.path()));
  directory.remove();
}

TEST_F(PrivateDirTest, MovedObjectRemovesOnce) {
  PrivateDir first = create();
  const fs::path path = first.path();
  {
    const PrivateDir second = std::move(first);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PrivateDirTest, AMissingBaseIsAnErrorWithItsName) {
  ::setenv("TMPDIR", (base / "no/such").c_str(), 1);
  const auto directory = PrivateDir::create({}, no_processes);
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message().find("no/such"), std::string::npos);
  EXPECT_FALSE(directory.error().hint.empty());
}

}  // namespace
}  // namespace rtev::test
