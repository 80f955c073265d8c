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
#include <fstream>
#include <functional>
#include <string>

#include "support/temp_dir.hpp"
#include "unit/enable/child.hpp"
#include "unit/enable/long_paths.hpp"

namespace rtev::enable {
namespace {

namespace fs = std::filesystem;

class RingRemovalTest : public ::testing::Test {
 protected:
  static constexpr uid_t user = 12345, other = 54321;
  static constexpr std::size_t ring_bytes = 1 << 16;

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
  static void* map(const UniqueFd& file) {
    void* const mapped = ::mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    EXPECT_NE(mapped, MAP_FAILED);
    return mapped;
  }
  /// Frees the rings of a program that maps them by `map_rings`. How many blocks the file has then that this returns.
  /// `change`: what the program does after its mappings were looked at.
  blkcnt_t blocks_after(const std::function<UniqueFd()>& map_rings, const std::function<void()>& change = {}) {
    Child child(
        [&] {
          const UniqueFd file = map_rings();
          ::dup2(file.get(), kept_descriptor);
          EXPECT_EQ(::setresgid(user, user, user), 0);
          EXPECT_EQ(::setresuid(user, user, user), 0);
          ::prctl(PR_SET_DUMPABLE, 1);
        },
        change ? change : [] {});
    auto held = HeldProcess::hold(child.pid(), 0);
    EXPECT_TRUE(held && held->may_write());
    if (!held) return -1;
    Procfs procfs;
    if (change) {
      procfs = Procfs(copy_of_proc(child.pid()));
      child.go_on();
    }
    free_removed_rings(procfs, {.process = std::move(*held)});
    struct stat status{};
    const std::string file = "/proc/" + std::to_string(child.pid()) + "/fd/" + std::to_string(kept_descriptor);
    EXPECT_EQ(::stat(file.c_str(), &status), 0);
    return status.st_blocks;
  }

  /// A /proc that has the mappings of a process as they are now.
  fs::path copy_of_proc(pid_t pid) const {
    const fs::path proc = fs::path("/proc") / std::to_string(pid), copy = dir_ / "proc" / std::to_string(pid);
    fs::create_directories(copy);
    for (const char* name : {"maps", "status"}) std::ofstream(copy / name) << std::ifstream(proc / name).rdbuf();
    fs::create_symlink("/proc/self", dir_ / "proc" / "self");
    return dir_ / "proc";
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

TEST_F(RingRemovalTest, LeavesAFileThatItsUserMayNotWrite) {
  EXPECT_GT(blocks_after([this] {
              UniqueFd removed = make("first", user);
              EXPECT_EQ(::fchmod(removed.get(), 0400), 0);
              map(removed);
              remove("first");
              map(make("second", user));
              return removed;
            }),
            0);
}

TEST_F(RingRemovalTest, LeavesTheRingOfAParent) {
  EXPECT_GT(blocks_after([this] {
              const fs::path name = dir_ / "first" / (std::to_string(::getppid()) + ".events");
              UniqueFd removed = make("first", user);
              fs::rename(dir_ / "first" / (std::to_string(::getpid()) + ".events"), name);
              map(removed);
              fs::remove(name);
              map(make("second", user));
              return removed;
            }),
            0);
}

TEST_F(RingRemovalTest, LeavesAFileThatIsMappedThereAfterTheLook) {
  void* place = nullptr;
  EXPECT_GT(
      blocks_after(
          [&] {
            const UniqueFd removed = make("first", user);
            place = map(removed);
            remove("first");
            UniqueFd other_removed = make("first", user);
            remove("first");
            map(make("second", user));
            return other_removed;
          },
          [&place] { ::mmap(place, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, kept_descriptor, 0); }),
      0);
}

TEST_F(RingRemovalTest, FindsTheRingThatIsThere) {
  const Child child([this] {
    const UniqueFd removed = make("first", user);
    map(removed);
    remove("first");
    map(make("second", user));
  });
  const auto held = HeldProcess::hold(child.pid(), 0);
  ASSERT_TRUE(held);
  const auto present = present_ring(Procfs(), *held);
  ASSERT_TRUE(present);
  EXPECT_EQ(fs::path(present->path).parent_path(), dir_ / "second");
}

TEST_F(RingRemovalTest, FindsTheRingBehindMoreRemovedOnesThanAreLookedAt) {
  constexpr int more = 70;
  const Child child([this] {
    map(make("second", user));  // mappings go downwards
    const UniqueFd removed = make("first", user);
    for (int i = 0; i < more; ++i) map(removed);
    remove("first");
  });
  const auto held = HeldProcess::hold(child.pid(), 0);
  ASSERT_TRUE(held);
  EXPECT_TRUE(present_ring(Procfs(), *held));
}

TEST_F(RingRemovalTest, ThousandsOfLongPathsTakeLittleMemory) {
  constexpr int mappings = 1500;
  constexpr std::size_t max_kib = 4096;  // all lines have 11 MB
  const Child child([this] {
    map_often(make_long_path(dir_.path(), std::to_string(::getpid()) + ".events"), mappings);
    const auto removed = make_long_path(dir_ / "first", std::to_string(::getpid()) + ".events");
    map_often(removed, mappings);
    fs::remove(removed);
  });
  const auto held = HeldProcess::hold(child.pid(), 0);
  ASSERT_TRUE(held);
  EXPECT_LT(peak_kib_of([&] { EXPECT_FALSE(present_ring(Procfs(), *held)) << "no ring of ours has such a path"; }),
            max_kib);
}

/// The ring of the program that a process ran before.
class LeftRingTest : public RingRemovalTest {
 protected:
  void SetUp() override {
    RingRemovalTest::SetUp();
    ASSERT_EQ(::chown((dir_ / "first").c_str(), user, user), 0);
  }
  /// Whether the file of the process is removed that is noted so.
  bool is_removed(const std::function<void(EnabledNote&)>& change, const std::function<void()>& first = [] {}) {
    const Child child([&] {
      make("first", user);
      first();
      EXPECT_EQ(::setresgid(user, user, user), 0);
      EXPECT_EQ(::setresuid(user, user, user), 0);
      ::prctl(PR_SET_DUMPABLE, 1);
    });
    const fs::path ring = dir_ / "first" / (std::to_string(child.pid()) + ".events");
    struct stat status{};
    EXPECT_EQ(::stat(ring.c_str(), &status), 0);
    auto held = HeldProcess::hold(child.pid(), 0);
    EXPECT_TRUE(held && held->may_write());
    if (!held) return false;
    EnabledNote before{.user = user, .ring_inode = status.st_ino, .ring_path = ring};
    change(before);
    remove_left_ring(Procfs(), {.process = std::move(*held)}, before);
    return !fs::exists(ring);
  }
};

TEST_F(LeftRingTest, IsRemoved) {
  EXPECT_TRUE(is_removed([](EnabledNote&) {}));
}

TEST_F(LeftRingTest, OfAnotherUserStays) {
  EXPECT_FALSE(is_removed([](EnabledNote& before) { before.user = 54321; }));
}

TEST_F(LeftRingTest, ThatIsAnotherFileByNowStays) {
  EXPECT_FALSE(is_removed([](EnabledNote& before) { ++before.ring_inode; }));
  EXPECT_FALSE(is_removed([](EnabledNote& before) { before.ring_path.clear(); }));
}

TEST_F(LeftRingTest, ThatTheProgramMapsAgainStays) {
  EXPECT_FALSE(is_removed(
      [](EnabledNote&) {},
      [this] {
        map(UniqueFd(::open((dir_ / "first" / (std::to_string(::getpid()) + ".events")).c_str(), O_RDWR | O_CLOEXEC)));
      }));
}

}  // namespace
}  // namespace rtev::enable
