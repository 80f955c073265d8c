// SPDX-License-Identifier: MIT
// Memory of removed rings is given back: of the program's own files only, however they were mapped. The program is a
// child of another user.
#include "enable/ring_removal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/temp_dir.hpp"
#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

namespace fs = std::filesystem;

constexpr uid_t user = 12345, other = 54321;
constexpr std::size_t ring_bytes = 1 << 16;

class RingRemovalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "makes files of other users, which takes root";
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
    for (const char* name : {"first", "second", "others"}) ASSERT_TRUE(fs::create_directory(dir_ / name));
  }
  /// A file of this user, full of bytes, under the name of a process's ring.
  UniqueFd make(const char* directory, uid_t owner) const {
    const fs::path path = dir_ / directory / (std::to_string(::getpid()) + ".events");
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    const std::string content(ring_bytes, 'x');
    EXPECT_EQ(::pwrite(file.get(), content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(::fchmod(file.get(), 0666), 0);
    EXPECT_EQ(::fchown(file.get(), owner, owner), 0);
    return file;
  }
  void remove(const char* directory) const { fs::remove(dir_ / directory / (std::to_string(::getpid()) + ".events")); }
  static void map(const UniqueFd& file) {
    EXPECT_NE(::mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0), MAP_FAILED);
  }
  /// Frees the rings of a program that maps them by `map_rings`. How many blocks the file has then that this returns.
  template <typename MapRings>
  blkcnt_t blocks_after(const MapRings& map_rings) {
    const Child child([&] {
      const UniqueFd file = map_rings();
      ::dup2(file.get(), kept_descriptor);
      EXPECT_EQ(::setresgid(user, user, user), 0);
      EXPECT_EQ(::setresuid(user, user, user), 0);
      ::prctl(PR_SET_DUMPABLE, 1);
    });
    auto held = HeldProcess::hold(child.pid(), 0);
    EXPECT_TRUE(held && held->may_write());
    if (!held) return -1;
    free_removed_rings(Procfs(), {.process = std::move(*held)});
    struct stat status{};
    const std::string file = "/proc/" + std::to_string(child.pid()) + "/fd/" + std::to_string(kept_descriptor);
    EXPECT_EQ(::stat(file.c_str(), &status), 0);
    return status.st_blocks;
  }

  static constexpr int kept_descriptor = 100;
  test::TempDir dir_;
};

TEST_F(RingRemovalTest, FreesARingThatWasRemoved) {
  EXPECT_EQ(blocks_after([this] {
              UniqueFd removed = make("first", user);
              map(removed);
              remove("first");
              map(make("second", user));
              return removed;
            }),
            0);
}

TEST_F(RingRemovalTest, LeavesTheOnlyRing) {
  EXPECT_GT(blocks_after([this] {
              UniqueFd removed = make("first", user);
              map(removed);
              remove("first");
              return removed;
            }),
            0);
}

TEST_F(RingRemovalTest, LeavesARemovedFileOfAnotherUser) {
  EXPECT_GT(blocks_after([this] {
              UniqueFd removed = make("others", other);
              map(removed);
              remove("others");
              map(make("second", user));
              return removed;
            }),
            0);
}

TEST_F(RingRemovalTest, LeavesAFileThatHasAnotherName) {
  EXPECT_GT(blocks_after([this] {
              UniqueFd linked = make("first", user);
              const fs::path name = dir_ / "first" / (std::to_string(::getpid()) + ".events");
              fs::create_hard_link(name, dir_ / "link");
              map(linked);
              remove("first");
              map(make("second", user));
              return linked;
            }),
            0);
}

}  // namespace
}  // namespace rtev::enable
