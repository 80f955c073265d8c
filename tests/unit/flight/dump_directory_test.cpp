// SPDX-License-Identifier: MIT
#include "flight/dump_directory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/temp_dir.hpp"
#include "unit/stream/world.hpp"

namespace rtev::flight {
namespace {

using ::testing::UnorderedElementsAre;

DumpDirectory open_directory(const test::TempDir& dir, std::uint64_t max_bytes = 1 << 20, FreeSpaceFloor floor = {}) {
  return {UniqueFd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
          dir.path().string(),
          {.max_bytes = max_bytes, .min_free = floor}};
}

std::string name_at(std::uint64_t second, const std::string& host = "host") {
  return DumpName{.host = host, .realtime_ns = second * 1'000'000'000 + 123'456'789, .trigger = "pause", .pid = 42}
      .text();
}

std::vector<std::string> names_in(const test::TempDir& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) names.push_back(entry.path().filename());
  return names;
}

TEST(DumpName, SaysWhereAndWhenAndWhy) {
  EXPECT_EQ(name_at(1'785'000'000), "rtev-host-20260725T172000.123456Z-pause-42.fxt.gz");
}

TEST(DumpName, IsRecognised) {
  for (const std::string& host : test::hostile_strings()) {
    const std::string name = name_at(1, host);
    EXPECT_TRUE(DumpName::is_one(name)) << name;
    EXPECT_EQ(name.find('/'), std::string::npos);
  }
  EXPECT_TRUE(DumpName::is_one(name_at(1, "web-1.example") + ".partial"));
  for (const char* const name :
       {"", "rtev-host.fxt.gz", "rtev-host-20260725T172000Z-pause-42.fxt.gz", "trace.fxt.gz",
        "rtev-host-20260725T172000.123456Z-pause-42.fxt", "rtev-host-20260725T172000.123456Z-pause-.fxt.gz",
        "rtev-host-20260725T172000.123456Z-PAUSE-42.fxt.gz", "rtev--20260725T172000.123456Z-pause-42.fxt.gz",
        "rtev-host-20260725T172000.123456Z--42.fxt.gz", "x-rtev-host-20260725T172000.123456Z-pause-42.fxt.gz"})
    EXPECT_FALSE(DumpName::is_one(name)) << name;
}

TEST(DumpDirectory, GivesAFileItsNameWhenItIsComplete) {
  const test::TempDir dir;
  DumpDirectory directory = open_directory(dir);
  const std::string name = name_at(1);
  auto fd = directory.create(name);
  ASSERT_TRUE(fd) << fd.error().message();
  EXPECT_THAT(names_in(dir), UnorderedElementsAre(name + ".partial"));
  ASSERT_TRUE(directory.complete(name, fd->get()));
  EXPECT_THAT(names_in(dir), UnorderedElementsAre(name));
  EXPECT_EQ(std::filesystem::status(dir / name).permissions(), std::filesystem::perms(0600));
  EXPECT_FALSE(directory.create(name).has_value() && directory.create(name).has_value());
}

TEST(DumpDirectory, RemovesPartialFilesThatNobodyWrites) {
  const test::TempDir dir;
  DumpDirectory directory = open_directory(dir);
  const std::string killed = name_at(1) + ".partial", other = "notes.partial";
  for (const std::string& name : {killed, other}) std::ofstream(dir / name) << "text";
  const auto writing = directory.create(name_at(2));
  ASSERT_TRUE(writing);
  EXPECT_EQ(directory.remove_partial(), 1u);
  EXPECT_THAT(names_in(dir), UnorderedElementsAre(name_at(2) + ".partial", other));
}

TEST(DumpDirectory, RemovesOldestDumpsOnly) {
  const test::TempDir dir;
  DumpDirectory directory = open_directory(dir, 100 << 10);
  const std::string block(64 << 10, 'x');
  for (const std::string& name : {name_at(30, "a"), name_at(10, "z"), name_at(20, "b"), std::string("mine.fxt.gz")})
    std::ofstream(dir / name) << block;
  // Not a file of ours, although it has such a name.
  std::filesystem::create_symlink("mine.fxt.gz", dir / name_at(1));
  EXPECT_EQ(directory.make_room(name_at(30, "a")), 2u);
  EXPECT_THAT(names_in(dir), UnorderedElementsAre(name_at(30, "a"), "mine.fxt.gz", name_at(1)));
}

TEST(DumpDirectory, MakesNoFileOnAFullDisk) {
  const test::TempDir dir;
  DumpDirectory directory = open_directory(dir, 1 << 20, {.share = 1});
  const auto fd = directory.create(name_at(1));
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, ENOSPC);
  EXPECT_TRUE(names_in(dir).empty());
}

}  // namespace
}  // namespace rtev::flight
