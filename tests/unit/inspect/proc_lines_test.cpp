// SPDX-License-Identifier: MIT
// Lines of maps and mountinfo, and what mappings are by name and permissions. The files themselves: procfs_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <string>
#include <string_view>

#include "inspect/procfs.hpp"

namespace rtev {
namespace {

TEST(ParseMapping, AllFields) {
  const auto mapping = parse_mapping("7f1000000000-7f1004103000 rw-s 0000a000 fe:12 1234567 /run/app/77.events");
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->begin, 0x7f1000000000u);
  EXPECT_EQ(mapping->end, 0x7f1004103000u);
  EXPECT_EQ(mapping->offset, 0xa000u);
  EXPECT_EQ(mapping->permissions, "rw-s");
  EXPECT_EQ(mapping->device, makedev(0xfe, 0x12));
  EXPECT_EQ(mapping->inode, 1234567u);
  EXPECT_EQ(mapping->path, "/run/app/77.events");
  EXPECT_FALSE(mapping->deleted);
}

TEST(ParseMapping, Paths) {
  const auto path = [](const std::string& text) {
    const auto mapping = parse_mapping("1000-2000 ---p 00000000 00:00 0" + text);
    return mapping ? std::pair{mapping->path, mapping->deleted} : std::pair{std::string{"refused"}, false};
  };
  EXPECT_EQ(path(""), std::pair(std::string{}, false));
  EXPECT_EQ(path(" "), std::pair(std::string{}, false));
  EXPECT_EQ(path("          [stack]"), std::pair(std::string{"[stack]"}, false));
  EXPECT_EQ(path(" /a b  c "), std::pair(std::string{"/a b  c "}, false));
  EXPECT_EQ(path(" /a\\012b"), std::pair(std::string{"/a\\012b"}, false)) << "as the kernel prints it";
  EXPECT_EQ(path(" /a (deleted)"), std::pair(std::string{"/a"}, true));
  EXPECT_EQ(path(" /a (deleted) (deleted)"), std::pair(std::string{"/a (deleted)"}, true));
  EXPECT_EQ(path(" /a(deleted)"), std::pair(std::string{"/a(deleted)"}, false));
}

TEST(ParseMapping, RefusesWhatIsNone) {
  for (const char* line : {
           "",
           " ",
           "-",
           "1000",
           "1000-2000",
           "1000-2000 rw-p",
           "1000-2000 rw-p 00000000",
           "1000-2000 rw-p 00000000 00:00",
           "2000-1000 rw-p 00000000 00:00 0 /a",                  // upside down
           "1000-1000 rw-p 00000000 00:00 0 /a",                  // empty
           "1000-2000 rw-x 00000000 00:00 0 /a",                  // neither private nor shared
           "1000-2000 rwxp+ 00000000 00:00 0 /a",                 //
           "1000-2000 rw 00000000 00:00 0 /a",                    //
           "1000-2000 wr-p 00000000 00:00 0 /a",                  //
           "g000-2000 rw-p 00000000 00:00 0 /a",                  //
           "0x1000-2000 rw-p 00000000 00:00 0 /a",                //
           "1000-2000 rw-p -1 00:00 0 /a",                        //
           "1000-2000 rw-p 00000000 0000 0 /a",                   //
           "1000-2000 rw-p 00000000 00:00 x /a",                  //
           "1000-2000 rw-p 00000000 00:00 -1 /a",                 //
           "1000-11111111111111111 rw-p 00000000 00:00 0 /a",     // 65 bits
           "1000-2000 rw-p 00000000 00:00 99999999999999999999",  // 67 bits
           " 1000-2000 rw-p 00000000 00:00 0 /a",                 //
       })
    EXPECT_FALSE(parse_mapping(line)) << line;
}

TEST(ParseMount, AllFields) {
  const auto mount = parse_mount("36 35 8:17 /srv/data /mnt rw,noatime shared:1 master:2 - btrfs /dev/sda rw,x=y - z");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->id, 36);
  EXPECT_EQ(mount->device, makedev(8, 17));
  EXPECT_EQ(mount->root, "/srv/data");
  EXPECT_EQ(mount->point, "/mnt");
  EXPECT_EQ(mount->type, "btrfs");
}

TEST(ParseMount, EscapesAreUndone) {
  const auto point = [](const std::string& text) {
    const auto mount = parse_mount("1 2 0:3 / " + text + " rw - tmpfs none rw");
    return mount ? mount->point : "refused";
  };
  EXPECT_EQ(point("/a\\040b\\011c\\012d\\134e\\043"), "/a b\tc\nd\\e#");
  EXPECT_EQ(point("/a\\134040"), "/a\\040") << "undone once";
  EXPECT_EQ(point("/\\377"), "/\377");
  EXPECT_EQ(point("/\\400/\\08/\\0/\\"), "/\\400/\\08/\\0/\\") << "none of the kernel's";
}

TEST(ParseMount, RefusesWhatIsNone) {
  for (const char* line : {"", "1", "1 2 0:3", "1 2 0:3 / /", "1 2 0:3 / / rw", "1 2 0:3 / / rw -", "1 2 0:3 / / rw - ",
                           "x 2 0:3 / / rw - tmpfs none rw", "1 2 03 / / rw - tmpfs none rw",
                           "1 2 0:x / / rw - tmpfs none rw", "1 2 0:3 / / rw tmpfs none rw"})
    EXPECT_FALSE(parse_mount(line)) << line;
}

TEST(IsRingMapping, ByNameAndPermissions) {
  const auto is_ring = [](const char* permissions, const char* path) {
    return is_ring_mapping({.permissions = permissions, .path = path});
  };
  EXPECT_TRUE(is_ring("rw-s", "/tmp/1.events"));
  EXPECT_TRUE(is_ring("rw-s", "/1234567.events"));
  EXPECT_TRUE(is_ring("rw-s", "/my dir/77.events"));
  EXPECT_FALSE(is_ring("r--s", "/my dir/77.events")) << "a reader's";
  EXPECT_FALSE(is_ring("rw-p", "/tmp/1.events"));
  EXPECT_FALSE(is_ring("rw-s", "/tmp/.events"));
  EXPECT_FALSE(is_ring("rw-s", "/tmp/1a.events"));
  EXPECT_FALSE(is_ring("rw-s", "/tmp/1.events.old"));
  EXPECT_FALSE(is_ring("rw-s", "/tmp/1.events/x"));
  EXPECT_FALSE(is_ring("rw-s", ""));
  EXPECT_FALSE(is_ring("", "/tmp/1.events"));
}

TEST(IsRuntimeLibrary, ByName) {
  const auto is_library = [](const char* path) { return is_runtime_library({.path = path}); };
  EXPECT_TRUE(is_library("/usr/lib/ocaml/libasmrun_shared.so"));
  EXPECT_TRUE(is_library("/usr/lib/ocaml/libcamlrun_shared.so"));
  EXPECT_TRUE(is_library("/usr/lib/libasmrun-x86_64-pc-linux-gnu-0016.so"));
  EXPECT_TRUE(is_library("/usr/lib/libasmrun.so"));
  EXPECT_FALSE(is_library("/usr/lib/debug/libasmrun_shared.so.debug"));
  EXPECT_FALSE(is_library("/usr/lib/ocaml/libasmrun_shared.so/x"));
  EXPECT_FALSE(is_library("/usr/lib/xlibasmrun_shared.so"));
  EXPECT_FALSE(is_library("/usr/lib/ocaml/libasmrun.a"));
  EXPECT_FALSE(is_library("/usr/lib/libc.so.6"));
  EXPECT_FALSE(is_library(""));
}

TEST(RingNumber, IsThePidInTheName) {
  EXPECT_EQ(ring_number("/my dir/77.events"), 77);
  EXPECT_EQ(ring_number("1.events"), 1);
  for (const char* path : {"", "/tmp/.events", "/tmp/1a.events", "/tmp/1.events/x", "/tmp/99999999999.events"})
    EXPECT_EQ(ring_number(path), std::nullopt) << path;
}

TEST(LoadedProgram, IsCodeOutsideOfLibraries) {
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
