// SPDX-License-Identifier: MIT
#include "inspect/mount_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

/// A made-up /proc with one namespace. Its mountinfo is an ordinary file, which never reports a change.
class MountTablesTest : public testing::Test {
 protected:
  MountTablesTest() {
    std::filesystem::create_directories(proc_ / "self/ns");
    std::filesystem::create_directories(proc_ / "7/ns");
    set_namespace("self", "mnt:[1]");
    set_namespace("7", "mnt:[2]");
    set_root("self", "/");
    set_root("7", "/");
    set_mounts("self", "");
  }
  void set_namespace(const std::string& process, const std::string& name) {
    std::filesystem::remove(proc_ / process / "ns/mnt");
    std::filesystem::create_symlink(name, proc_ / process / "ns/mnt");
  }
  void set_root(const std::string& process, const std::string& root) {
    std::filesystem::remove(proc_ / process / "root");
    std::filesystem::create_symlink(root, proc_ / process / "root");
  }
  void set_mounts(const std::string& process, const std::string& text) {
    std::ofstream(proc_ / process / "mountinfo") << text;
  }
  /// A line of mountinfo, for the mount of the file.
  std::string mount(const std::string& type) const {
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(file_.get()));
    for (std::string key, value; info >> key >> value;) {
      if (key == "mnt_id:") return value + " 0 0:3 / / rw - " + type + " none rw\n";
    }
    return {};
  }
  bool is_safe(MountTables& tables, bool careful = true) const {
    return tables.check(file_.get(), 7, careful).has_value();
  }

  const test::TempDir proc_;
  /// Lies on a mount that no real table has, either.
  const UniqueFd file_{::memfd_create("file", MFD_CLOEXEC)};
  const std::string other_mounts_ = "1 0 0:3 / /mnt rw - tmpfs none rw\n";
};

TEST_F(MountTablesTest, TheTypeOfTheMountDecides) {
  set_mounts("7", other_mounts_ + mount("tmpfs"));
  MountTables local(proc_.path());
  EXPECT_TRUE(is_safe(local));
  set_mounts("7", mount("fuse"));
  MountTables remote(proc_.path());
  EXPECT_FALSE(is_safe(remote));
  EXPECT_FALSE(is_safe(remote, false)) << "the file system itself, a tmpfs, is not asked";
}

TEST_F(MountTablesTest, ATableThatHasNotChangedIsNotReadAgain) {
  set_mounts("7", other_mounts_);
  MountTables tables(proc_.path());
  EXPECT_FALSE(is_safe(tables));
  EXPECT_TRUE(is_safe(tables, false)) << "the file system is asked";
  set_mounts("7", mount("tmpfs"));
  EXPECT_FALSE(is_safe(tables));
  set_root("7", "/below");
  EXPECT_TRUE(is_safe(tables)) << "the process sees other mounts";
}

TEST_F(MountTablesTest, WhatLiesBeyondTheLimitsIsNotKnown) {
  set_mounts("7", other_mounts_ + mount("tmpfs"));
  MountTables short_tables(proc_.path(), {.bytes = other_mounts_.size() + 30});
  EXPECT_FALSE(is_safe(short_tables));
  EXPECT_TRUE(is_safe(short_tables, false));
  MountTables fast_tables(proc_.path(), {.read_cpu_ns = 0});
  EXPECT_FALSE(is_safe(fast_tables));
  EXPECT_TRUE(is_safe(fast_tables, false));
}

TEST_F(MountTablesTest, ATableIsNotReadAllTheTime) {
  set_mounts("7", other_mounts_);
  // A second of CPU time takes 11 days.
  MountTables tables(proc_.path(), {.cpu_share{1'000'000, 1}});
  EXPECT_FALSE(is_safe(tables));
  set_mounts("7", mount("tmpfs"));
  set_root("7", "/below");
  EXPECT_FALSE(is_safe(tables));
  EXPECT_TRUE(is_safe(tables, false));
}

TEST_F(MountTablesTest, ATableThatCouldNotBeReadIsReadAgain) {
  std::filesystem::create_directory(proc_ / "7/mountinfo");
  MountTables tables(proc_.path());
  EXPECT_FALSE(is_safe(tables));
  std::filesystem::remove(proc_ / "7/mountinfo");
  set_mounts("7", mount("tmpfs"));
  EXPECT_TRUE(is_safe(tables));
}

/// A process in a mount namespace of its own, which mounts a tmpfs each time that it is told to.
class Mounter {
 public:
  explicit Mounter(const std::filesystem::path& folder) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(to[1]);
      const bool ready =
          ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
      for (char byte = ready ? 'y' : 'n'; ::write(from[1], &byte, 1) == 1 && ::read(to[0], &byte, 1) == 1;) {
        byte = ::chdir("/") == 0 && ::mount("t", folder.c_str(), "tmpfs", 0, nullptr) == 0 &&
                       ::chdir(folder.c_str()) == 0 && ::close(::open("file", O_CREAT | O_RDWR, 0600)) == 0
                   ? 'y'
                   : 'n';
      }
      ::_exit(0);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_.reset(to[1]);
    from_.reset(from[0]);
    can_mount_ = succeeded();
  }
  ~Mounter() {
    to_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Mounter(const Mounter&) = delete;
  Mounter& operator=(const Mounter&) = delete;

  bool can_mount() const { return can_mount_; }
  bool mount() const { return ::write(to_.get(), "m", 1) == 1 && succeeded(); }
  std::int32_t pid() const { return pid_; }
  /// A file on its latest mount.
  UniqueFd file() const {
    return UniqueFd(::open(("/proc/" + std::to_string(pid_) + "/cwd/file").c_str(), O_PATH | O_CLOEXEC));
  }

 private:
  bool succeeded() const {
    char byte = 'n';
    return ::read(from_.get(), &byte, 1) == 1 && byte == 'y';
  }
  pid_t pid_ = -1;
  UniqueFd to_, from_;
  bool can_mount_ = false;
};

/// Linux 6.11 and newer say of what type a single mount is.
bool kernel_knows_mounts() {
  const UniqueFd mounts(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  std::uint64_t id = 0;
  return ::ioctl(mounts.get(), _IOR(NSIO, 5, std::uint64_t), &id) == 0;
}

TEST(MountTables, AreReadAgainWhenTheKernelReportsAChange) {
  const test::TempDir folder;
  const Mounter mounter(folder.path());
  if (!mounter.can_mount()) GTEST_SKIP() << "needs root";
  MountTables tables, poor("/proc", {.cpu_share{1'000'000, 1}}), unread("/proc", {.bytes = 0});
  for (const bool first : {true, false}) {
    ASSERT_TRUE(mounter.mount());
    const UniqueFd file = mounter.file();
    EXPECT_TRUE(tables.check(file.get(), mounter.pid(), true));
    EXPECT_EQ(poor.check(file.get(), mounter.pid(), true).has_value(), first || kernel_knows_mounts())
        << "its time is used up";
    EXPECT_EQ(unread.check(file.get(), mounter.pid(), true).has_value(), kernel_knows_mounts());
    EXPECT_FALSE(unread.check(file.get(), ::getpid(), true)) << "of another namespace";
    EXPECT_TRUE(poor.check(file.get(), mounter.pid(), false));
  }
}

}  // namespace
}  // namespace rtev
