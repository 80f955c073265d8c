// SPDX-License-Identifier: MIT
// What -i, dump and convert read, and the traps that other users may have set there.
#include "cli/input.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temp_dir.hpp"

namespace rtev::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// "content" if the file can be read, else why not.
std::string try_reading(const std::string& path) {
  const auto file = open_input(path);
  if (!file) {
    EXPECT_EQ(file.error().what, "cannot read");
    EXPECT_EQ(file.error().subject, path);
    EXPECT_NE(file.error().hint, "");
    return file.error().why;
  }
  std::array<char, 16> bytes{};
  const ssize_t size = ::read(file->get(), bytes.data(), bytes.size());
  return size < 0 ? "error" : std::string(bytes.data(), static_cast<std::size_t>(size));
}

/// A folder such as /tmp. The links and files of others are made by root.
class InputFile : public ::testing::Test {
 protected:
  static constexpr uid_t attacker = 12345;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of others";
    ::unsetenv("SUDO_UID");
    ::unsetenv("SUDO_GID");
    fs::permissions(dir_.path(), fs::perms(01777));
  }

  std::string file(const std::string& name, uid_t owner) const {
    const std::string path = dir_ / name;
    std::ofstream(path) << "content";
    EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
    return path;
  }
  std::string link(const std::string& name, const std::string& target, uid_t owner) const {
    const std::string path = dir_ / name;
    fs::create_symlink(target, path);
    EXPECT_EQ(::lchown(path.c_str(), owner, owner), 0);
    return path;
  }

  test::TempDir dir_;
};

TEST_F(InputFile, FilesOfAnyUserAreRead) {
  for (const uid_t owner : {uid_t{0}, attacker}) EXPECT_EQ(try_reading(file(std::to_string(owner), owner)), "content");
  EXPECT_THAT(try_reading(dir_ / "missing"), HasSubstr("No such file"));
  EXPECT_THAT(try_reading(dir_.path()), HasSubstr("Is a directory"));
}

TEST_F(InputFile, LinksOfOthersAreNotFollowed) {
  file("private", 0);
  EXPECT_EQ(try_reading(link("own", "private", 0)), "content");
  EXPECT_THAT(try_reading(link("planted", "private", attacker)),
              AllOf(HasSubstr("symbolic link"), HasSubstr("user 12345")));
  EXPECT_THAT(try_reading(link("folder", ".", attacker) + "/private"), HasSubstr("symbolic link of user 12345"));
  EXPECT_THAT(try_reading(link("to_planted", "planted", 0)), HasSubstr("symbolic link of user 12345"));
}

TEST_F(InputFile, FilesWithSeveralNamesAreRefused) {
  for (const uid_t owner : {uid_t{0}, attacker, uid_t{54321}}) {
    const std::string name = std::to_string(owner);
    fs::create_hard_link(file(name, owner), dir_ / ("planted" + name));
    EXPECT_THAT(try_reading(dir_ / ("planted" + name)), HasSubstr("2 names"));
  }
}

TEST_F(InputFile, FifosOfOthersAreNotWaitedFor) {
  const std::string path = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  ASSERT_EQ(::chown(path.c_str(), attacker, attacker), 0);
  EXPECT_THAT(try_reading(path), HasSubstr("belongs to another user, user 12345"));
}

TEST_F(InputFile, DevicesAreRefused) {
  EXPECT_EQ(try_reading("/dev/null"), "");
  const std::string device = dir_ / "disk";
  // A device that does not exist, so that nothing happens should it be opened.
  if (::mknod(device.c_str(), S_IFBLK | 0666, makedev(240, 1)) == 0) {
    EXPECT_THAT(try_reading(device), HasSubstr("device"));
  }
}

TEST(InputFifo, OwnOneIsReadWhenItsWriterComes) {
  const test::TempDir dir;
  const std::string path = dir / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "content"; });
  EXPECT_EQ(try_reading(path), "content");
  writer.join();
}

TEST(InputDescriptor, InheritedOnesAreUsedAsTheyAre) {
  const test::TempDir dir;
  const std::string path = dir / "file";
  std::ofstream(path) << "skipped content";
  const UniqueFd given(::open(path.c_str(), O_RDONLY)), writing(::open(path.c_str(), O_WRONLY)),
      own(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  fs::remove(path);
  ::lseek(given.get(), 8, SEEK_SET);
  EXPECT_EQ(try_reading("/dev/fd/" + std::to_string(given.get())), "content");
  EXPECT_THAT(try_reading("/dev/fd/" + std::to_string(writing.get())), HasSubstr("writing only"));
  EXPECT_THAT(try_reading("/proc/self/fd/" + std::to_string(own.get())), HasSubstr("Bad file descriptor"));
}

}  // namespace
}  // namespace rtev::cli
