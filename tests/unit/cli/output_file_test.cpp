// SPDX-License-Identifier: MIT
// What -o writes to, and the traps that other users may have set there.
#include "cli/output_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/unique_fd.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"

namespace rtev::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t caller = 65534, attacker = 12345;

/// A folder such as /tmp, and a folder that only root may enter. Called by sudo, so only root can run the tests.
class OutputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root was called by sudo";
    fs::permissions(dir_.path(), fs::perms(01777));
    fs::create_directory(dir_ / "private");
    fs::permissions(dir_ / "private", fs::perms(0700));
    ::setenv("SUDO_UID", "65534", 1);
    ::setenv("SUDO_GID", "65534", 1);
  }
  void TearDown() override {
    ::unsetenv("SUDO_UID");
    ::unsetenv("SUDO_GID");
  }

  std::string file(const std::string& name, uid_t owner, mode_t mode = 0666) const {
    const std::string path = dir_ / name;
    std::ofstream(path) << "kept";
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
    return path;
  }
  std::string link(const std::string& name, const std::string& target, uid_t owner) const {
    const std::string path = dir_ / name;
    fs::create_symlink(target, path);
    EXPECT_EQ(::lchown(path.c_str(), owner, owner), 0);
    return path;
  }
  std::string fifo(const std::string& name, uid_t owner) const {
    const std::string path = dir_ / name;
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
    return path;
  }

  static Result<void> write_to(const std::string& path) {
    auto output = open_output(path);
    if (!output) return std::unexpected(output.error());
    (*output)->begin();
    EXPECT_TRUE((*output)->write("new"));
    return {};
  }
  static std::string why_not(const std::string& path) {
    const auto written = write_to(path);
    if (written) return "it was written";
    EXPECT_NE(written.error().hint, "");
    return written.error().why;
  }

  test::TempDir dir_;
};

using OutputFileDeathTest = OutputFile;

TEST_F(OutputFileDeathTest, ASignalRemovesWhatIsWrittenInPart) {
  ::unsetenv("SUDO_UID");
  ::unsetenv("SUDO_GID");
  const std::string made = dir_ / "private/made", existing = file("existing", ::geteuid());
  const auto write_to = [](const std::string& path) {
    ::signal(SIGINT, SIG_DFL);  // ignored in the background of a shell
    remove_output_on_signal();
    const auto output = open_output(path).value();
    output->begin();
    output->write("a part");
    ::raise(SIGINT);
  };
  EXPECT_EXIT(write_to(made), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_FALSE(fs::exists(made));
  EXPECT_EXIT(write_to(existing), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_TRUE(fs::exists(existing)) << "somebody else made it";
}

TEST_F(OutputFile, NewFilesBelongToTheCallerAndAreReadByNobodyElse) {
  const std::string path = dir_ / "new";
  ASSERT_TRUE(write_to(path));
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, caller);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  ASSERT_TRUE(write_to(path)) << "again";
}

TEST_F(OutputFile, WhatTheCallerMayNotDoIsNotDone) {
  EXPECT_THAT(why_not(dir_ / "private/new"), HasSubstr("Permission denied"));
  const std::string path = file("of_root", 0);
  EXPECT_THAT(why_not(path), HasSubstr("belongs to another user, root"));
  EXPECT_THAT(why_not(file("locked", caller, 0400)), HasSubstr("Permission denied"));
  EXPECT_EQ(test::read_file(path), "kept");
  std::ofstream(dir_ / "private/again") << "root has its rights again";
  EXPECT_TRUE(fs::exists(dir_ / "private/again"));
}

TEST_F(OutputFile, FilesOfOthersAreRefusedAlsoWithoutSudo) {
  const std::string path = file("trap", attacker);
  EXPECT_THAT(why_not(path), HasSubstr("belongs to another user, user 12345"));
  TearDown();
  EXPECT_THAT(why_not(path), HasSubstr("belongs to another user"));
  EXPECT_EQ(test::read_file(path), "kept");
}

TEST_F(OutputFile, LinksOfOthersAreNotFollowed) {
  const std::string kept = file("kept", caller);
  for (const char* target : {"kept", "not_there"})
    EXPECT_THAT(why_not(link(std::string("to_") + target, target, attacker)),
                AllOf(HasSubstr("symbolic link"), HasSubstr("user 12345")));
  EXPECT_FALSE(fs::exists(dir_ / "not_there"));
  fs::create_directory(dir_ / "folder");
  fs::permissions(dir_ / "folder", fs::perms(0777));
  EXPECT_THAT(why_not(link("folders", "folder", attacker) + "/new"), HasSubstr("symbolic link"));
  EXPECT_THAT(why_not(link("own", "to_kept", caller)), HasSubstr("'to_kept' is a symbolic link of user 12345"));
  EXPECT_EQ(test::read_file(kept), "kept");
}

TEST_F(OutputFile, OwnLinksAndThoseOfRootAreFollowed) {
  const std::string kept = file("kept", caller);
  EXPECT_TRUE(write_to(link("own", "kept", caller)));
  EXPECT_TRUE(write_to(link("of_root", kept, 0)));
  EXPECT_TRUE(write_to(link("dangling", "created", caller)));
  EXPECT_TRUE(write_to(link("here", ".", caller) + "/here/../" + dir_.path().filename().string() + "/by_way"));
  for (const char* name : {"kept", "created", "by_way"}) EXPECT_EQ(test::read_file(dir_ / name), "new") << name;
  EXPECT_THAT(why_not(link("loop", "loop", caller)), HasSubstr("Too many levels"));
  EXPECT_THAT(why_not(link("root", "/", caller)), HasSubstr("Is a directory"));
}

TEST_F(OutputFile, FilesWithSeveralNamesAreRefused) {
  const std::string kept = file("kept", caller);
  fs::create_hard_link(kept, dir_ / "planted");
  EXPECT_THAT(why_not(dir_ / "planted"), HasSubstr("2 names"));
  EXPECT_EQ(test::read_file(kept), "kept");
}

TEST_F(OutputFile, FifosNeverBlock) {
  EXPECT_THAT(why_not(fifo("planted", attacker)), HasSubstr("belongs to another user"));
  const std::string own = fifo("own", caller);
  EXPECT_THAT(why_not(own), HasSubstr("no program reads"));
  const UniqueFd reader(::open(own.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(write_to(own));
  std::array<char, 8> bytes{};
  EXPECT_EQ(::read(reader.get(), bytes.data(), bytes.size()), 3);
}

TEST_F(OutputFile, DevicesAndFoldersAreRefused) {
  EXPECT_TRUE(write_to("/dev/null"));
  const std::string device = dir_ / "disk";
  // A device that does not exist, so that nothing happens should it be opened.
  if (::mknod(device.c_str(), S_IFBLK | 0666, makedev(240, 1)) == 0) {
    EXPECT_EQ(::chown(device.c_str(), caller, caller), 0);
    EXPECT_THAT(why_not(device), HasSubstr("device"));
  }
  const std::string folders[] = {dir_.path(), dir_ / "new/", "/", dir_ / ".."};
  for (const std::string& path : folders) EXPECT_THAT(why_not(path), HasSubstr("Is a directory")) << path;
}

TEST_F(OutputFile, InheritedDescriptorsAreUsedAsTheyAre) {
  // Nobody but root could open it.
  const std::string path = file("private/given", 0, 0600);
  const UniqueFd given(::open(path.c_str(), O_WRONLY | O_APPEND));
  EXPECT_TRUE(write_to("/dev/fd/" + std::to_string(given.get())));
  EXPECT_EQ(test::read_file(path), "keptnew");
  const UniqueFd reading(::open(path.c_str(), O_RDONLY)), own(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_THAT(why_not("/dev/fd/" + std::to_string(reading.get())), HasSubstr("reading only"));
  EXPECT_THAT(why_not("/proc/self/fd/" + std::to_string(own.get())), HasSubstr("Bad file descriptor"));
  EXPECT_THAT(why_not("/dev/fd/1000000"), HasSubstr("Bad file descriptor"));
}

TEST_F(OutputFile, CreatedFilesAreRemovedIfTheRunDoesNotBegin) {
  const std::string path = dir_ / "new", kept = file("kept", caller);
  EXPECT_TRUE(open_output(path));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(open_output(kept));
  EXPECT_EQ(test::read_file(kept), "kept");
  auto output = open_output(path);
  fs::remove(path);
  std::ofstream(path) << "of someone else";
  output = open_output(kept);
  EXPECT_TRUE(fs::exists(path)) << "it is another file by now";
}

}  // namespace
}  // namespace rtev::cli
