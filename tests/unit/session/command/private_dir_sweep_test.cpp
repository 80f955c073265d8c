// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/unique_fd.hpp"
#include "session/command/private_dir.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

/// A directory where private ones are made, and a made-up /proc.
class StaleDirs : public ::testing::Test {
 protected:
  StaleDirs() {
    fs::create_directory(base());
    fs::create_directory(processes / "1");
  }

  fs::path base() const { return place / "tmp"; }
  fs::path left_behind(const std::string& name = "rtev-bpf.a1B2c3", mode_t mode = 0700) const {
    const fs::path path = base() / name;
    EXPECT_EQ(::mkdir(path.c_str(), mode), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void sweep(std::optional<uid_t> owner = {}) const { sweep(owner, look()); }
  void sweep(std::optional<uid_t> owner, const Look& look) const {
    for (const fs::directory_entry& entry : fs::directory_iterator(base()))
      if (!entry.is_symlink()) fs::last_write_time(entry, fs::file_time_type::clock::now() - age);
    sweep_stale_dirs(base(), owner, look);
  }
  Look look() const {
    return [procfs = Procfs(processes.path())](const ProcessQuery& query) { return look_at(procfs, query); };
  }
  static void put_file(const fs::path& path) { std::ofstream(path) << "content"; }

  TempDir place, processes;
  std::chrono::minutes age{11};
};

TEST_F(StaleDirs, AreRemovedWithTheRingsInThem) {
  const fs::path empty = left_behind(), full = left_behind("rtev-bpf.zzzzzz");
  put_file(full / "123.events");
  sweep();
  EXPECT_FALSE(fs::exists(empty));
  EXPECT_FALSE(fs::exists(full));
}

TEST_F(StaleDirs, OfARunningTracerStay) {
  ASSERT_EQ(::setenv("TMPDIR", base().c_str(), 1), 0);
  auto directory = PrivateDir::create({}, look());
  const auto second = PrivateDir::create({}, look());  // sweeps, too
  ::unsetenv("TMPDIR");
  ASSERT_TRUE(directory && second);
  EXPECT_NE(directory->path(), second->path());
  sweep();
  EXPECT_TRUE(fs::exists(directory->path()));
  EXPECT_TRUE(fs::exists(second->path()));
}

TEST_F(StaleDirs, StayAsLongAsAForkedProcessHasThem) {
  const fs::path path = left_behind();
  UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  const UniqueFd inherited(::dup(lock.get()));
  lock.reset();
  sweep();
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(StaleDirs, StayWhileAProcessHasThemInItsEnvironment) {
  const fs::path path = left_behind();
  const std::string variable = std::string(ring_directory_variable) + "=" + path.string();
  std::ofstream(processes / "1/environ") << "A=1" << '\0' << variable << '\0';
  sweep();
  EXPECT_TRUE(fs::exists(path));
  std::ofstream(processes / "1/environ") << variable << "/other" << '\0';
  sweep();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StaleDirs, StayIfTheyAreYoung) {
  const fs::path path = left_behind();
  age = std::chrono::minutes(9);
  sweep();
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(StaleDirs, LinksAreNotFollowed) {
  const fs::path precious = place / "precious";
  ASSERT_EQ(::mkdir(precious.c_str(), 0700), 0);
  put_file(precious / "1.events");
  fs::create_directory_symlink(precious, base() / "rtev-bpf.aaaaaa");
  const fs::path stale = left_behind();
  fs::create_symlink(precious / "1.events", stale / "2.events");
  sweep();
  EXPECT_TRUE(fs::exists(precious / "1.events"));
  EXPECT_TRUE(fs::is_symlink(base() / "rtev-bpf.aaaaaa"));
  EXPECT_FALSE(fs::exists(stale));
}

TEST_F(StaleDirs, OtherDirectoriesStay) {
  const fs::path open = left_behind("rtev-bpf.bbbbbb", 0755), other = left_behind("rtev-bpf.toolong"),
                 prefix = left_behind("xrtev-bpf.cccc"), file = base() / "rtev-bpf.dddddd",
                 full = left_behind("rtev-bpf.eeeeee");
  put_file(file);
  fs::create_directory(full / "folder");
  sweep();
  for (const fs::path& path : {open, other, prefix, file, full / "folder"}) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(StaleDirs, OfOtherUsersStayUnlessTheyCalledSudo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t nobody = 65534;
  const fs::path path = left_behind();
  ASSERT_EQ(::chown(path.c_str(), nobody, nobody), 0);
  sweep();
  EXPECT_TRUE(fs::exists(path));
  sweep(nobody);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StaleDirs, StayIfOtherUsersCouldReplaceThem) {
  const fs::path path = left_behind();
  ASSERT_EQ(::chmod(base().c_str(), 0777), 0);
  sweep();
  EXPECT_TRUE(fs::exists(path));
  ASSERT_EQ(::chmod(base().c_str(), 01777), 0) << "as /tmp";
  sweep();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StaleDirs, StayIfItIsUnknownWhoUsesThem) {
  const fs::path path = left_behind();
  sweep();
  EXPECT_FALSE(fs::exists(path));
  left_behind();
  sweep({}, [](const ProcessQuery&) { return std::nullopt; });
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(StaleDirs, AMissingBaseIsIgnored) {
  const fs::path path = left_behind();
  sweep_stale_dirs(place / "no/such", {}, look());
  EXPECT_TRUE(fs::exists(path)) << "of another base";
}

}  // namespace
}  // namespace rtev::test
