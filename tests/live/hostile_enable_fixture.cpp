// SPDX-License-Identifier: MIT
#include "live/hostile_enable_fixture.hpp"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>

namespace rtev::test {

fs::path attack_program(const char* name) {
  return fs::path(RTEV_ATTACK_FOLDER) / name;
}

fs::path copy_as(const fs::path& from, const fs::path& to, uid_t owner, mode_t mode) {
  fs::copy_file(from, to);
  EXPECT_EQ(::chown(to.c_str(), owner, owner), 0);
  EXPECT_EQ(::chmod(to.c_str(), mode), 0);
  return to;
}

std::set<fs::path> files_in(const fs::path& directory) {
  std::set<fs::path> files;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(directory, none)) files.insert(file.path());
  return files;
}

void HostileEnableLive::SetUp() {
  LiveTest::SetUp();
  suspects_before_ = files_in(suspects_directory);
}

void HostileEnableLive::TearDown() {
  for (const fs::path& path : mounts_) ::umount2(path.c_str(), MNT_DETACH);
  // Other files may have the same inodes once those of this test are removed.
  for (const fs::path& entry : files_in(suspects_directory))
    if (!suspects_before_.contains(entry)) fs::remove(entry);
}

void HostileEnableLive::need(const fs::path& file) {
  if (fs::exists(file)) return;
  if (std::getenv("CI") != nullptr) FAIL() << "there is no " << file;
  GTEST_SKIP() << "there is no " << file;
}

fs::path HostileEnableLive::make_directory(const fs::path& name, uid_t owner, mode_t mode) {
  const fs::path path = dir / name;
  fs::create_directories(path);
  struct statfs system{};
  const bool is_memory = ::statfs(path.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC;
  if (is_memory && mode == 0700 && ::mount("none", path.c_str(), "tmpfs", 0, nullptr) == 0) mounts_.push_back(path);
  EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

Command HostileEnableLive::enabling(const std::vector<pid_t>& pids, const char* patience) {
  Command command{.argv = {tool(), "enable", "-d", patience}};
  for (const pid_t pid : pids) command.argv.insert(command.argv.end(), {"-p", std::to_string(pid)});
  return command;
}

}  // namespace rtev::test
