// SPDX-License-Identifier: MIT
// Files of /proc, by this process's own instance of it or without one.
#include "base/proc_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file_io.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  visit_names(directory, [&names](std::string_view name) {
    names.emplace_back(name);
    return true;
  });
  return names;
}

TEST(ProcFiles, AreOfThisProcess) {
  EXPECT_EQ(link_target("/proc/self"), std::to_string(::getpid()));
  EXPECT_EQ(link_target("/proc/self/exe"), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(read_small_file("/proc/self/comm", 64),
            read_small_file("/proc/" + std::to_string(::getpid()) + "/comm", 64));
  EXPECT_EQ(std::ranges::count(names_in("/proc"), std::to_string(::getpid())), 1);
}

TEST(ProcFiles, ShareNoDirectoryWithProc) {
  if (own_proc() < 0) GTEST_SKIP() << "this process may not make a procfs instance";
  struct stat own{}, shared{};
  ASSERT_EQ(::fstat(open_proc("/proc/self", O_PATH).get(), &own), 0);
  ASSERT_EQ(::stat("/proc/self", &shared), 0);
  EXPECT_NE(own.st_dev, shared.st_dev);
  EXPECT_NE(::fcntl(own_proc(), F_GETFD) & FD_CLOEXEC, 0) << "a command would have it";
}

TEST(ProcFiles, ElsewhereAreFoundByTheirPath) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir / "proc");
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"proc"});
  EXPECT_TRUE(open_proc(dir / "proc", O_PATH));
  EXPECT_FALSE(open_proc("/process", O_PATH));
  EXPECT_TRUE(names_in(dir / "none").empty());
}

TEST(ProcFiles, AreVisitedUntilItIsEnough) {
  int visited = 0;
  visit_names("/proc", [&visited](std::string_view) { return ++visited < 3; });
  EXPECT_EQ(visited, 3);
}

}  // namespace
}  // namespace rtev
