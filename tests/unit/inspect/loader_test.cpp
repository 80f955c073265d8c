// SPDX-License-Identifier: MIT
#include "inspect/loader.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

TEST(Loader, ByItsName) {
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
                           "/lib/ld-musl-x86_64.so.1", "/lib/x86_64-linux-gnu/ld-2.31.so", "/ld.so", "/lib/ld.so.1"})
    EXPECT_TRUE(is_loader_path(path)) << path;
  for (const char* path : {"", "/", "/usr/bin/ld", "/usr/bin/ld-wrapper", "/usr/bin/ld.gold", "/lib/libld-x.so.1",
                           "/ld-linux.so.2/server"})
    EXPECT_FALSE(is_loader_path(path)) << path;
}

TEST(Loader, ProgramIsCodeThatIsNoLibrarys) {
  const auto is_program = [](const char* permissions, const char* path) {
    return is_loaded_program({.permissions = permissions, .path = path});
  };
  EXPECT_TRUE(is_program("r-xp", "/srv/server"));
  EXPECT_TRUE(is_program("r-xp", "/srv/a.sock et"));
  EXPECT_FALSE(is_program("r--p", "/srv/server"));
  EXPECT_FALSE(is_program("", "/srv/server"));
  EXPECT_FALSE(is_program("r-xp", "/lib/libc.so.6"));
  EXPECT_FALSE(is_program("r-xp", "/lib/ld-linux-x86-64.so.2"));
  EXPECT_FALSE(is_program("r-xp", "/lib/libasmrun_shared.so"));
  EXPECT_FALSE(is_program("r-xp", "/lib/plugin.cmxs"));
  EXPECT_FALSE(is_program("r-xp", "[vdso]"));
  EXPECT_FALSE(is_program("rwxp", ""));
}

}  // namespace
}  // namespace rtev
