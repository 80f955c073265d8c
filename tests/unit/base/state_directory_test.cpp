// SPDX-License-Identifier: MIT
// Directories below /run: others can neither write to them nor, by reading, lock them.
#include "base/state_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & ALLPERMS : 0;
}

TEST(StateDirectory, IsMadeWithItsParent) {
  const test::TempDir dir;
  const mode_t umask_before = ::umask(0);
  const std::filesystem::path parent = dir / "run" / "parent";
  EXPECT_TRUE(open_state_directory(parent / "own"));
  ::umask(umask_before);
  EXPECT_EQ(mode_of(parent), 0700u);
  EXPECT_EQ(mode_of(parent / "own"), 0700u);
}

TEST(StateDirectory, OfAnEarlierVersionIsClosedToOthers) {
  const test::TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  EXPECT_TRUE(open_state_directory(dir.path()));
  EXPECT_EQ(mode_of(dir.path()), 0700u);
}

TEST(StateDirectory, IsNotOneThatOthersMayWriteTo) {
  const test::TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  EXPECT_FALSE(open_state_directory(dir.path()));
}

}  // namespace
}  // namespace rtev
