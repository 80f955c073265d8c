// SPDX-License-Identifier: MIT
#include "inspect/file_place.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/records.h"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// What the kernel side sends behind the common part of a record.
std::vector<std::byte> tail_of(rtev_file ring, rtev_file program, std::string_view paths) {
  auto record = std::make_unique<rtev_ring_record>();
  record->clock_offset = -5;
  record->ring = ring;
  record->program = program;
  paths.copy(record->paths, sizeof record->paths);
  const auto bytes = std::as_bytes(std::span(record.get(), 1));
  const auto tail = bytes.subspan(sizeof record->lifecycle,
                                  sizeof *record - sizeof record->lifecycle - sizeof record->paths + paths.size());
  return {tail.begin(), tail.end()};
}

rtev_file path_of(__u32 bytes) {
  return {.inode = 1, .device = 1, .path_bytes = bytes};
}

TEST(ParseRingRecord, NamesBecomePaths) {
  constexpr std::string_view ring("7.events\0my dir\0tmp\0", 20), program("hello\0", 6);
  const auto tail = tail_of({.inode = 5, .device = 8 << 20 | 0x12345, .path_bytes = 20},
                            {.inode = 6, .device = 0x2a, .path_bytes = 6}, std::string(ring).append(program));
  const RingRecordFiles places = parse_ring_record(tail);
  ASSERT_TRUE(places.ring && places.program);
  EXPECT_EQ(places.clock_offset_ns, -5);
  EXPECT_EQ(places.ring->device, makedev(8, 0x12345));
  EXPECT_EQ(places.ring->inode, 5U);
  EXPECT_EQ(places.ring->path, "/tmp/my dir/7.events");
  EXPECT_EQ(places.program->device, makedev(0, 0x2a));
  EXPECT_EQ(places.program->inode, 6U);
  EXPECT_EQ(places.program->path, "/hello");
}

TEST(ParseRingRecord, EachPathMayBeUnknown) {
  const RingRecordFiles program_only = parse_ring_record(tail_of(path_of(0), path_of(2), {"a\0", 2}));
  EXPECT_FALSE(program_only.ring);
  EXPECT_EQ(program_only.program.value_or(FilePlace{}).path, "/a");
  const RingRecordFiles ring_only = parse_ring_record(tail_of(path_of(2), path_of(0), {"a\0", 2}));
  EXPECT_EQ(ring_only.ring.value_or(FilePlace{}).path, "/a");
  EXPECT_FALSE(ring_only.program);
}

TEST(ParseRingRecord, ShortTailsAreSurvived) {
  const auto whole = tail_of(path_of(4), path_of(4), {"a\0b\0c\0d\0", 8});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const RingRecordFiles places = parse_ring_record(std::span(whole).first(size));
    EXPECT_EQ(places.clock_offset_ns.has_value(), size >= whole.size() - 8) << size;
    EXPECT_EQ(places.ring.has_value(), size >= whole.size() - 4 || size == whole.size() - 6) << size;
  }
  EXPECT_FALSE(parse_ring_record(tail_of(path_of(UINT32_MAX), path_of(UINT32_MAX), "ab")).ring) << "no NUL";
}

Mount mount_of(std::string root, std::string point, std::uint64_t device = makedev(8, 1), std::string type = "ext4") {
  return {.id = 1, .device = device, .root = std::move(root), .point = std::move(point), .type = std::move(type)};
}

TEST(FindCandidates, UnderEachMountThatHoldsThePath) {
  const FilePlace place{.device = makedev(8, 1), .inode = 1, .path = "/srv/a/7.events"};
  const auto candidates = [&](const std::vector<Mount>& mounts) {
    std::vector<std::string> paths;
    for (const Candidate& candidate : find_candidates(place, mounts)) paths.push_back(candidate.path());
    return paths;
  };
  EXPECT_THAT(candidates({mount_of("/", "/")}), ElementsAre("/srv/a/7.events"));
  EXPECT_THAT(candidates({mount_of("/", "/mnt")}), ElementsAre("/mnt/srv/a/7.events"));
  EXPECT_THAT(candidates({mount_of("/srv", "/mnt"), mount_of("/srv/a", "/")}),
              ElementsAre("/mnt/a/7.events", "/7.events"));
  EXPECT_THAT(candidates({mount_of("/", "/", makedev(8, 2))}), IsEmpty()) << "another file system";
  EXPECT_THAT(candidates({mount_of("/sr", "/mnt"), mount_of("/srv/a/b", "/mnt")}), IsEmpty()) << "another subtree";
  EXPECT_THAT(candidates({mount_of("/srv/a/7.events", "/mnt/file")}), IsEmpty())
      << "a mount of the file alone, whose name says nothing";
  EXPECT_THAT(candidates({mount_of("/", "/home/u/mnt", makedev(8, 1), "fuse.sshfs")}), IsEmpty());
  EXPECT_LE(candidates(std::vector(5000, mount_of("/", "/mnt"))).size(), 100U);
}

/// A made-up mount table over real files: the folder is said to be all of a file system.
class OpenByPlace : public testing::Test {
 protected:
  OpenByPlace() {
    fs::create_directory(proc_ / "self");
    for (const char* name : {"fd", "fdinfo"}) fs::create_symlink(fs::path("/proc/self") / name, proc_ / "self" / name);
    // The descriptor's own mount, since the kernel tells through which one a file was opened.
    const int fd = ::open(dir_.path().c_str(), O_PATH | O_CLOEXEC);
    const UniqueFd owner{fd};
    mount_id_ = procfs_.open_file(fd).value().mount;
    mount(mount_id_, "9:77");
  }

  void mount(std::int64_t id, std::string_view device) {
    std::ofstream(proc_ / "self/mountinfo")
        << id << " 1 " << device << " / " << dir_.path().native() << " rw - ext4 none rw\n";
  }
  void write(const fs::path& name, std::string_view text) {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name) << text;
  }
  FilePlace place(const std::string& name) const {
    struct stat status{};
    EXPECT_EQ(::stat((dir_ / name).c_str(), &status), 0);
    return {.device = makedev(9, 77), .inode = status.st_ino, .path = "/" + name};
  }
  std::string read(const FilePlace& place) const {
    const auto found = open_by_place(procfs_, place);
    if (!found) return "none";
    std::string text(64, '\0');
    const ssize_t size = ::pread(found->fd.get(), text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
  }

  test::TempDir dir_, proc_;
  Procfs procfs_{proc_.path()};
  std::int64_t mount_id_ = 0;
};

TEST_F(OpenByPlace, IsFoundWhateverItsName) {
  const std::string name = "a b\n\\012\x1b[31m/" + std::string(255, 'x') + "/7.events";
  write(name, "ring");
  const auto found = open_by_place(procfs_, place(name));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->path, (dir_ / name).native());
  EXPECT_EQ(read(place(name)), "ring");
}

TEST_F(OpenByPlace, OnlyTheVeryFile) {
  write("7.events", "ring");
  const FilePlace right = place("7.events");
  FilePlace other_inode = right, other_device = right, other_path = right;
  ++other_inode.inode;
  other_device.device = makedev(9, 78);
  other_path.path = "/8.events";
  EXPECT_EQ(read(right), "ring");
  EXPECT_EQ(read(other_inode), "none");
  EXPECT_EQ(read(other_device), "none");
  EXPECT_EQ(read(other_path), "none");

  fs::rename(dir_ / "7.events", dir_ / "moved");
  EXPECT_EQ(read(right), "none");
  write("7.events", "another");
  EXPECT_EQ(read(right), "none") << "the same name, another file";
}

TEST_F(OpenByPlace, NotThroughAMountOfAnotherDevice) {
  write("7.events", "ring");
  const FilePlace right = place("7.events");
  // Something else is mounted on top: the path leads into it, and the table says what it is.
  mount(mount_id_ + 1'000'000, "9:77");
  EXPECT_EQ(read(right), "none");
  mount(mount_id_, "9:78");
  EXPECT_EQ(read(right), "none");
}

TEST_F(OpenByPlace, NoOtherMountIsEnteredOnTheWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount";
  write("over/7.events", "ring");
  const FilePlace right = place("over/7.events");
  ASSERT_EQ(::mount("none", (dir_ / "over").c_str(), "tmpfs", 0, nullptr), 0) << std::strerror(errno);
  write("over/7.events", "another");
  const std::string found = read(right);
  EXPECT_EQ(::umount2((dir_ / "over").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(found, "none");
  EXPECT_EQ(read(right), "ring");
}

TEST_F(OpenByPlace, NoSymbolicLinkIsFollowed) {
  write("real/7.events", "ring");
  const FilePlace right = place("real/7.events");
  fs::create_symlink("real", dir_ / "folder");
  fs::create_symlink("real/7.events", dir_ / "8.events");
  for (const char* path : {"/folder/7.events", "/8.events"}) {
    FilePlace linked = right;
    linked.path = path;
    EXPECT_EQ(read(linked), "none") << path;
  }
  EXPECT_EQ(read(right), "ring");
}

TEST_F(OpenByPlace, NothingButRegularFilesIsOpened) {
  ASSERT_EQ(::mkfifo((dir_ / "7.events").c_str(), 0600), 0);
  fs::create_directory(dir_ / "8.events");
  EXPECT_EQ(read(place("7.events")), "none") << "and nobody waited for a writer";
  EXPECT_EQ(read(place("8.events")), "none");
}

TEST(OpenByPlaceHere, IsFoundThroughTheRealMountTable) {
  const test::TempDir dir;
  std::ofstream(dir / "7.events") << "ring";
  const Procfs procfs;
  const UniqueFd fd{::open((dir / "7.events").c_str(), O_RDONLY | O_CLOEXEC)};
  const auto open = procfs.open_file(fd.get());
  ASSERT_TRUE(open);
  const std::vector<Mount> mounts = procfs.mounts();
  const auto mount = std::ranges::find(mounts, open->mount, &Mount::id);
  ASSERT_NE(mount, mounts.end());
  // From the root of its file system, as the kernel side tells it.
  const fs::path inside = fs::relative(dir / "7.events", mount->point);
  const FilePlace place{.device = mount->device, .inode = open->inode, .path = (mount->root / inside).native()};
  const auto found = open_by_place(procfs, place);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(fs::path(found->path), dir / "7.events");
}

}  // namespace
}  // namespace rtev
