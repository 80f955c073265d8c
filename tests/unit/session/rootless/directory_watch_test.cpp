// SPDX-License-Identifier: MIT
#include "session/rootless/directory_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::IsEmpty, testing::UnorderedElementsAre;

class DirectoryWatchTest : public ::testing::Test {
 protected:
  /// As a runtime makes it.
  void make(const std::string& name) const {
    std::ofstream(dir / name, std::ios::app);
    fs::resize_file(dir / name, 4096);
  }
  static bool is_readable(const DirectoryWatch& directory) {
    pollfd wait{.fd = directory.event_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 0) == 1;
  }

  TempDir dir;
};

TEST_F(DirectoryWatchTest, NewRingsAreReportedOnce) {
  DirectoryWatch directory(dir.path());
  EXPECT_THAT(directory.take(), IsEmpty());
  make("12.events");
  make("7.events");
  make("notes.txt");
  make("x.events");
  EXPECT_TRUE(is_readable(directory));
  EXPECT_THAT(directory.take(), UnorderedElementsAre(7, 12));
  EXPECT_FALSE(is_readable(directory));
  EXPECT_THAT(directory.take(), IsEmpty());
}

TEST_F(DirectoryWatchTest, OldFilesAreReportedWhenAProgramBeginsARingInThem) {
  make("12.events");
  make("13.events");
  DirectoryWatch directory(dir.path());
  EXPECT_THAT(directory.take(), IsEmpty());
  make("12.events");
  EXPECT_THAT(directory.take(), ElementsAre(12));
}

TEST_F(DirectoryWatchTest, OnlyRegularFilesAreOpened) {
  const DirectoryWatch directory(dir.path());
  make("1.events");
  const OpenedRing ring = directory.open(1);
  EXPECT_TRUE(ring.fd);
  EXPECT_EQ(ring.path, dir / "1.events");
  fs::create_symlink(dir / "1.events", dir / "2.events");
  ASSERT_EQ(::mkfifo((dir / "3.events").c_str(), 0600), 0);
  fs::create_directory(dir / "4.events");
  for (const int number : {2, 3, 4, 5}) EXPECT_FALSE(directory.open(number).fd) << number;
}

TEST_F(DirectoryWatchTest, OnlyTheSameFileIsRemoved) {
  const DirectoryWatch directory(dir.path());
  make("1.events");
  const auto first = identify_ring(directory.open(1).fd.get());
  ASSERT_TRUE(first);
  directory.remove(1, {first->first, first->second + 1});
  EXPECT_TRUE(fs::exists(dir / "1.events"));
  directory.remove(1, *first);
  EXPECT_FALSE(fs::exists(dir / "1.events"));
}

TEST_F(DirectoryWatchTest, ADirectoryThatIsMissingHasNoRings) {
  DirectoryWatch directory(dir / "none");
  EXPECT_LT(directory.event_fd(), 0);
  EXPECT_THAT(directory.take(), IsEmpty());
  EXPECT_FALSE(directory.open(1).fd);
}

}  // namespace
}  // namespace rtev::test
