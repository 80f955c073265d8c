// SPDX-License-Identifier: MIT
#include "processes/rings/saved_rings.hpp"

#include <gtest/gtest.h>

#include "rtev/ring_reader.hpp"
#include "support/ring_file_builder.hpp"

namespace rtev {
namespace {

using test::RingFileBuilder;
namespace make = test::make;

class SavedRingsTest : public testing::Test {
 protected:
  SavedRingsTest() { file_.append(0, make::begin(5, 3)); }

  void add(std::uint16_t type, std::uint32_t tgid, std::uint64_t announced_ns, std::uint64_t end,
           std::span<const std::byte> payload) {
    rings_.add({.announced_ns = announced_ns,
                .begin = 0,
                .end = end,
                .tgid = tgid,
                .uid = tgid / 100,
                .type = type,
                .domain = 0,
                .bytes = static_cast<std::uint32_t>(payload.size())},
               payload);
  }
  void add_header(std::uint32_t tgid, std::uint64_t announced_ns) {
    add(RTEV_SAVED_RING, tgid, announced_ns, file_.bytes().size(), file_.bytes().first(sizeof(FileHeader)));
  }
  void add_words(std::uint32_t tgid, std::uint64_t announced_ns) {
    const std::uint64_t words[] = {file_.word(0, 0), file_.word(0, 1)};
    add(RTEV_SAVED_WORDS, tgid, announced_ns, 2, std::as_bytes(std::span(words)));
    add(RTEV_SAVED_DOMAIN, tgid, announced_ns, 2, {});
  }
  static std::uint64_t delivered(SavedRingFile file) {
    auto reader = RingReader::adopt(file.fd.release(), "saved", {});
    if (!reader) return 0;
    reader->poll([](const Batch&) {});
    return reader->accounting().delivered;
  }

  RingFileBuilder file_{{.domains = 1, .words_log2 = 6}};
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;
  SavedRings rings_{max_bytes};
};

TEST_F(SavedRingsTest, AreTakenOnceByProcessAndTime) {
  for (const std::uint32_t tgid : {7u, 8u}) {
    add_header(tgid, 100);
    add_words(tgid, 100);
  }
  EXPECT_FALSE(rings_.take(7, 101, 200)) << "an earlier program's";
  EXPECT_FALSE(rings_.take(7, 50, 99)) << "a later program's";
  EXPECT_FALSE(rings_.take(6, 0, UINT64_MAX));
  auto ring = rings_.take(7, 100, 100);
  ASSERT_TRUE(ring);
  EXPECT_TRUE(ring->cut.empty());
  EXPECT_EQ(delivered(std::move(*ring)), 2u);
  EXPECT_FALSE(rings_.take(7, 0, UINT64_MAX));
  EXPECT_EQ(rings_.size(), 1u);
}

TEST_F(SavedRingsTest, TheLastOneOfAProcessIsMeant) {
  add_header(7, 100);
  add_header(7, 150);
  add_header(7, 300);
  add_words(7, 150);
  auto ring = rings_.take(7, 100, 200);
  ASSERT_TRUE(ring);
  EXPECT_EQ(delivered(std::move(*ring)), 2u);
  EXPECT_EQ(rings_.size(), 1u) << "that of the next program is kept";
}

TEST_F(SavedRingsTest, AreForgotten) {
  add_header(7, 100);
  add_header(7, 200);
  add_header(8, 100);
  rings_.forget(7, 199);
  EXPECT_EQ(rings_.size(), 2u);
  EXPECT_FALSE(rings_.take(7, 0, 199));
  rings_.forget(8, UINT64_MAX);
  EXPECT_EQ(rings_.size(), 1u);
}

TEST_F(SavedRingsTest, PiecesWithoutARingAreNone) {
  add_words(7, 100);
  add(RTEV_SAVED_RING, 7, 100, 1 << 20, {});
  const std::byte zeros[sizeof(FileHeader)]{};
  add(RTEV_SAVED_RING, 7, 100, 1 << 20, zeros);
  add(99, 7, 100, 0, {});
  EXPECT_EQ(rings_.size(), 0u);
}

TEST_F(SavedRingsTest, TellWhetherThatWasAll) {
  for (const bool more : {false, true}) {
    add_header(7, 100);
    add_words(7, 100);
    add(RTEV_SAVED_LAST, 7, 100, 0, {});
    if (more) add_words(7, 100);
    const auto ring = rings_.take(7, 100, 100);
    ASSERT_TRUE(ring);
    EXPECT_EQ(ring->last, !more);
  }
}

/// Nobody may ever ask for some of them.
TEST_F(SavedRingsTest, TheOldestMakeRoom) {
  rings_ = SavedRings(std::size_t{1} << 30);
  for (std::uint32_t tgid = 1; tgid <= 5000; ++tgid) add_header(tgid, 10'000 - tgid);
  EXPECT_EQ(rings_.size(), 4096u);
  add_header(9000, 10'000);
  add_words(9000, 10'000);
  EXPECT_EQ(rings_.size(), 4096u);
  auto ring = rings_.take(9000, 10'000, 10'000);
  ASSERT_TRUE(ring);
  EXPECT_EQ(delivered(std::move(*ring)), 2u);
}

TEST_F(SavedRingsTest, TheOldestRingOfAUserWithTooMuchMakesRoom) {
  add_header(200, 1);
  add_words(200, 1);
  const std::size_t one = rings_.bytes();
  EXPECT_LT(one, file_.bytes().size()) << "only pages with words";
  for (std::uint32_t time = 2; time < 1000; ++time) {
    add_header(100, time);
    add_words(100, time);
  }
  EXPECT_LE(rings_.bytes(), max_bytes / 4 * 3 + one);
  EXPECT_GE(rings_.bytes(), max_bytes / 2);
  EXPECT_FALSE(rings_.take(100, 2, 2));
  EXPECT_TRUE(rings_.take(100, 999, 999));
  EXPECT_TRUE(rings_.take(200, 1, 1)) << "another user's";
}

}  // namespace
}  // namespace rtev
