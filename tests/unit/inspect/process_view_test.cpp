// SPDX-License-Identifier: MIT
#include "inspect/process_view.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

TEST(ProcessView, HasTheUserOfTheProcess) {
  const test::TempDir proc;
  std::filesystem::create_directory(proc / "7");
  std::ofstream(proc / "7/status") << "Name:\tprogram\nUid:\t1000\t0\t0\t0\n";
  const Procfs procfs{proc.path()};
  EXPECT_EQ(look_at(procfs, {.pid = 7, .user = true}).image.user, 1000u);
  EXPECT_EQ(look_at(procfs, {.pid = 7, .image = true}).image.user, 1000u);
}

/// A made-up /proc with a process that maps a file, and is asked for a ring at the address of that mapping.
class AnnouncedRingTest : public testing::Test {
 protected:
  AnnouncedRingTest() {
    std::filesystem::create_directories(proc_ / "7/map_files");
    std::filesystem::create_directory(proc_ / "self");
    std::filesystem::create_symlink("/proc/self/fdinfo", proc_ / "self/fdinfo");
    std::ofstream(proc_ / "7/stat") << "7 (program) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0\n";
    std::ofstream(proc_ / "7.events") << "ring";
    struct stat status{};
    EXPECT_EQ(::stat((proc_ / "7.events").c_str(), &status), 0);
    inode_ = status.st_ino;
  }
  void map(const std::string& addresses) {
    std::filesystem::create_symlink(proc_ / "7.events", proc_ / "7/map_files" / addresses);
  }
  ProcessView look(std::uint64_t inode) const {
    AnnouncedRing ring{.place = {}, .address = 0x7f0000201000, .length = 0x2000};
    ring.place.inode = inode;
    return look_at(Procfs(proc_.path()), {.pid = 7, .announced_ring = ring});
  }
  /// How often a look-up waited, about.
  long waits(std::uint64_t inode) const {
    rusage before{}, after{};
    ::getrusage(RUSAGE_THREAD, &before);
    EXPECT_TRUE(look(inode).rings.empty());
    ::getrusage(RUSAGE_THREAD, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
  }

  const test::TempDir proc_;
  std::uint64_t inode_ = 0;
};

TEST_F(AnnouncedRingTest, IsFoundByItsMapping) {
  map("7f0000201000-7f0000203000");
  const ProcessView view = look(inode_);
  ASSERT_EQ(view.rings.size(), 1u);
  EXPECT_EQ(view.rings[0].begin, 0x7f0000201000u);
}

TEST_F(AnnouncedRingTest, IsLookedForAgainWhileNothingIsMapped) {
  EXPECT_GE(waits(inode_), 10);
  map("7f0000000000-7f0000002000");
  EXPECT_GE(waits(inode_ + 1), 10) << "a mapping that does not reach the address";
}

TEST_F(AnnouncedRingTest, IsNotLookedForAgainOnceAnotherFileIsMapped) {
  map("7f0000201000-7f0000203000");
  EXPECT_LT(waits(inode_ + 1), 10);
}

}  // namespace
}  // namespace rtev
