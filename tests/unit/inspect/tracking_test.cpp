// SPDX-License-Identifier: MIT
#include "inspect/tracking.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

namespace fs = std::filesystem;

/// A process 42 that runs `exe`, which maps prints as `mapped` and at 0x10000.
rtev_tracked tracked(const std::string& exe, const std::string& mapped) {
  const test::TempDir root;
  fs::create_directories(root / "42");
  fs::create_symlink(exe, root / "42/exe");
  std::ofstream{root / "42/maps"} << "8000-9000 r--p 00000000 fe:01 12 /lib/other\n"
                                  << "10000-11000 r--p 00000000 fe:01 13 " << mapped << "\n"
                                  << "11000-12000 r-xp 00001000 fe:01 13 " << mapped << "\n";
  Binary binary{.id = 7, .runtime = {}};
  binary.runtime.tick_thread = {.begin = 0x400, .end = 0x500};
  return tracking_of(42, Procfs{root.path()}, binary);
}

TEST(Tracking, CodeIsWhereTheProgramIsMapped) {
  const rtev_tracked at = tracked("/bin/server", "/bin/server");
  EXPECT_EQ(at.binary, 7u);
  EXPECT_EQ(at.tick_begin, 0x10400u);
  EXPECT_EQ(at.tick_end, 0x10500u);
  EXPECT_EQ(at.backup_begin, 0u) << "not known";
  EXPECT_EQ(tracked("/bin/server", "/bin/client").tick_begin, 0u) << "not mapped";
}

TEST(Tracking, ProgramsOfAnyName) {
  EXPECT_EQ(tracked("/a b", "/a b").tick_begin, 0x10400u);
  EXPECT_EQ(tracked("/a\nb\n", "/a\\012b\\012").tick_begin, 0x10400u);
  EXPECT_EQ(tracked("/a\\b\\012\n", "/a\\b\\012\\012").tick_begin, 0x10400u) << "nothing else is escaped";
  EXPECT_EQ(tracked("/a (deleted)", "/a (deleted)").tick_begin, 0x10400u) << "unlinked";
  EXPECT_EQ(tracked("/a (deleted) (deleted)", "/a (deleted) (deleted)").tick_begin, 0x10400u);
}

TEST(Tracking, ProgramsThatALoaderRuns) {
  EXPECT_EQ(tracked("/lib/ld-linux-x86-64.so.2", "/srv/server").tick_begin, 0x10400u);
  EXPECT_EQ(tracked("/lib/ld-linux-x86-64.so.2", "/srv/libserver.so.1").tick_begin, 0u);
}

}  // namespace
}  // namespace rtev
