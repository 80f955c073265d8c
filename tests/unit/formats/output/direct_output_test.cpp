// SPDX-License-Identifier: MIT
// Files that spare the page cache: they bypass it, or leave it soon.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "formats/output/aligned_buffer.hpp"
#include "formats/output/background_output.hpp"
#include "formats/output/output.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class DirectOutput : public testing::Test {
 protected:
  UniqueFd create() const { return UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)); }

  std::string content() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// False for tmpfs, whose files are only in the page cache.
  bool is_on_disk() const {
    struct statfs where{};
    return ::statfs(dir.path().c_str(), &where) == 0 && where.f_type != TMPFS_MAGIC;
  }

  const test::TempDir dir;
  const std::string path = dir / "file";
};

std::string random_bytes(std::size_t size, std::mt19937_64& random) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t value = random();
    bytes.replace(i, std::min<std::size_t>(8, size - i), reinterpret_cast<const char*>(&value),
                  std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

std::size_t cached_pages(int fd, std::size_t bytes) {
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return 0;
  std::vector<unsigned char> pages((bytes + AlignedBuffer::page_bytes - 1) / AlignedBuffer::page_bytes);
  ::mincore(map, bytes, pages.data());
  ::munmap(map, bytes);
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_F(DirectOutput, WritesAllBytesInOrder) {
  std::mt19937_64 random(5);
  std::string expected;
  FdOutput file(create(), path);
  file.spare_page_cache();
  {
    BackgroundOutput output(file, {.together_bytes = mebibyte});
    while (expected.size() < 24 * mebibyte) {
      const std::string piece = random_bytes(random() % (random() % 4 == 0 ? 2 * mebibyte : 20'000), random);
      expected += piece;
      ASSERT_TRUE(output.write(piece));
      if (random() % 50 != 0) continue;
      ASSERT_TRUE(output.sync());
    }
    ASSERT_TRUE(output.finish());
    EXPECT_EQ(file.written(), expected.size());
    EXPECT_TRUE(content() == expected);
  }
}

TEST_F(DirectOutput, APieceIsCompletelyInTheFileOnceItIsWritten) {
  std::mt19937_64 random(6);
  std::string expected;
  FdOutput file(create(), path);
  file.spare_page_cache();
  AlignedBuffer block(mebibyte);
  for (int i = 0; i < 20; ++i) {
    const std::string piece = random_bytes(random() % mebibyte, random);
    block.begin_at(expected.size());
    block.append(piece);
    expected += piece;
    ASSERT_TRUE(file.write(block.bytes()));
    ASSERT_EQ(std::filesystem::file_size(path), expected.size());
  }
  EXPECT_TRUE(content() == expected);
}

TEST_F(DirectOutput, WholePagesBypassThePageCache) {
  if (!is_on_disk()) GTEST_SKIP() << "temporary files are in memory here";
  constexpr std::size_t blocks = 3;  // fewer than what PageCacheTrimmer begins with
  UniqueFd fd = create();
  FdOutput file(fd.get(), path);
  file.spare_page_cache();
  AlignedBuffer block(mebibyte);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    block.begin_at(offset);
    block.append(std::string(mebibyte - 100, static_cast<char>('a' + i)));
    offset += block.size();
    ASSERT_TRUE(file.write(block.bytes()));
  }
  EXPECT_LE(cached_pages(fd.get(), offset), 2 * blocks) << "at most the first and the last of each block";
}

TEST_F(DirectOutput, ALongFileLeavesThePageCacheAndIsComplete) {
  if (!is_on_disk()) GTEST_SKIP() << "temporary files are in memory here";
  constexpr std::size_t pieces = 96;
  UniqueFd file = create();
  FdOutput output(file.get(), path);
  output.spare_page_cache();
  for (std::size_t i = 0; i < pieces; ++i) {
    ASSERT_TRUE(output.write(std::string(mebibyte, static_cast<char>('a' + i % 26))));
    // Wait for the disk, so that pages are clean and can be dropped.
    ::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE);
  }
  EXPECT_LT(cached_pages(file.get(), pieces * mebibyte), pieces * mebibyte / AlignedBuffer::page_bytes / 2);
  std::string piece(mebibyte, '\0');
  for (std::size_t i = 0; i < pieces; ++i) {
    ASSERT_EQ(::pread(file.get(), piece.data(), mebibyte, static_cast<off_t>(i * mebibyte)),
              static_cast<ssize_t>(mebibyte));
    ASSERT_EQ(piece, std::string(mebibyte, static_cast<char>('a' + i % 26)));
  }
}

TEST_F(DirectOutput, UnalignedBytesUseThePageCache) {
  FdOutput file(create(), path);
  file.spare_page_cache();
  const std::string odd(mebibyte + 1, 'x');
  AlignedBuffer block(mebibyte);
  block.begin_at(odd.size() + 7);  // seven bytes off
  block.append(std::string(mebibyte, 'y'));
  ASSERT_TRUE(file.write(odd));
  ASSERT_TRUE(file.write(block.bytes()));
  EXPECT_TRUE(content() == odd + std::string(mebibyte, 'y'));
}

TEST_F(DirectOutput, IsOnTheDiskWhenItIsFinished) {
  FdOutput file(create(), path);
  file.spare_page_cache();
  ASSERT_TRUE(file.write(std::string(3 * mebibyte, 'x')));
  EXPECT_TRUE(file.finish());
  EXPECT_FALSE(file.error());
}

TEST_F(DirectOutput, RemovesAPieceThatDoesNotFit) {
  FdOutput file(create(), path);
  file.spare_page_cache();
  AlignedBuffer block(mebibyte);
  block.append(std::string(mebibyte - 10, 'a'));
  {
    const test::FileSizeLimit room(3 * mebibyte / 2);
    EXPECT_TRUE(file.write(block.bytes()));
    block.begin_at(mebibyte - 10);
    block.append(std::string(mebibyte, 'b'));
    EXPECT_FALSE(file.write(block.bytes()));
  }
  ASSERT_TRUE(file.error());
  EXPECT_EQ(file.error()->code, EFBIG);
  EXPECT_TRUE(content() == std::string(mebibyte - 10, 'a'));
}

TEST_F(DirectOutput, KeepsThePiecesThatFit) {
  FdOutput file(create(), path);
  file.spare_page_cache();
  AlignedBuffer block(mebibyte);
  for (const char piece : {'a', 'b', 'c', 'd'}) block.append(std::string(99'999, piece));
  {
    const test::FileSizeLimit room(300'000);
    EXPECT_FALSE(file.write_pieces(block.bytes(), block.ends()));
  }
  EXPECT_TRUE(content() == std::string(99'999, 'a') + std::string(99'999, 'b') + std::string(99'999, 'c'));
  EXPECT_EQ(file.written(), 3 * 99'999u);
}

}  // namespace
}  // namespace rtev
