// SPDX-License-Identifier: MIT
// The builder of ring files against positions worked out by hand: what all tests of the reader stand on.
#include "support/ring_file_builder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

TEST(RingFileBuilder, HeaderIsWhatOcamlWritesByDefault) {
  RingFileBuilder file({.domains = 128, .words_log2 = 16});
  EXPECT_EQ(file.bytes().size(), 68'167'744u);
  EXPECT_EQ(file.header().version, 1u);
  EXPECT_EQ(file.header().max_domains, 128u);
  EXPECT_EQ(file.header().ring_header_size_bytes, 80u);
  EXPECT_EQ(file.header().ring_size_bytes, 524'288u);
  EXPECT_EQ(file.header().ring_size_elements, 65'536u);
  EXPECT_EQ(file.header().headers_offset, 64u);
  EXPECT_EQ(file.header().data_offset, 10'304u);
  EXPECT_EQ(file.header().custom_events_offset, 67'119'168u);
}

TEST(RingFileBuilder, FormatOfOcaml50HasNoNames) {
  RingFileBuilder file({.domains = 128, .words_log2 = 16, .names = false});
  EXPECT_EQ(file.bytes().size(), 67'119'168u);
  EXPECT_EQ(file.header().custom_events_offset, 0u);
  EXPECT_THROW(file.set_name(0, "x"), std::out_of_range);
}

TEST(RingFileBuilder, PublishesMessagesOneBehindTheOther) {
  RingFileBuilder file({.domains = 2, .words_log2 = 4});
  file.append(1, make::begin(100, 11));
  file.append(1, make::counter(101, 5, 4096));
  EXPECT_EQ(file.tail(0), 0u);
  EXPECT_EQ(file.head(1), 0u);
  EXPECT_EQ(file.tail(1), 5u);
  EXPECT_EQ(file.word(1, 0), std::uint64_t{2} << 54 | std::uint64_t{2} << 49 | std::uint64_t{11} << 36);
  EXPECT_EQ(file.word(1, 1), 100u);
  EXPECT_EQ(file.word(1, 2), std::uint64_t{3} << 54 | std::uint64_t{4} << 49 | std::uint64_t{5} << 36);
  EXPECT_EQ(file.word(1, 4), 4096u);
  // At its place in the file: header, two ring headers, ring 0.
  std::uint64_t first = 0;
  std::memcpy(&first, file.bytes().data() + 64 + 2 * 80 + 16 * 8, sizeof first);
  EXPECT_EQ(first, file.word(1, 0));
}

TEST(RingFileBuilder, PadsAtThePhysicalEndAndFreesWholeMessages) {
  RingFileBuilder file({.domains = 1, .words_log2 = 4});
  for (std::uint64_t i = 0; i < 5; ++i) file.append(0, make::counter(i, 1, i));  // words 0 to 14
  EXPECT_EQ(file.head(0), 0u);
  EXPECT_EQ(file.tail(0), 15u);
  // One word is left before the end. Padding (1) + message (2) + live (15) must stay under 16: one message goes.
  file.append(0, make::begin(9, 3));
  EXPECT_EQ(file.head(0), 3u);
  EXPECT_EQ(file.tail(0), 18u);
  EXPECT_EQ(file.word(0, 15), std::uint64_t{1} << 54);
  EXPECT_EQ(file.word(0, 16), message::first_word(2, false, message::begin, 3));
  EXPECT_EQ(file.word(0, 17), 9u);
  // A message that fits exactly up to the end needs no padding.
  for (int i = 0; i < 7; ++i) file.append(0, make::end(10, 3));
  EXPECT_EQ(file.tail(0), 32u);
  EXPECT_EQ(file.word(0, 30), message::first_word(2, false, message::end, 3));
  EXPECT_EQ(file.head(0), 18u) << "14 words live, the padding freed with its neighbours";
}

TEST(RingFileBuilder, CustomBytesEndLikeAnOcamlString) {
  const struct {
    std::size_t size, words;
    unsigned last;
  } cases[] = {{0, 1, 7}, {1, 1, 6}, {7, 1, 0}, {8, 2, 7}, {1024, 129, 7}};
  for (const auto& expected : cases) {
    const Words words = make::user_custom(1, 2, std::string(expected.size, 'x'));
    EXPECT_EQ(words.size(), expected.words + 2) << expected.size;
    EXPECT_EQ(words[0] >> 54, expected.words + 2) << expected.size;
    EXPECT_EQ(words.back() >> 56, expected.last) << expected.size;
  }
}

TEST(RingFileBuilder, TakesAFileOverAsTheNextProgramOfThePidDoes) {
  const TempDir dir;
  const auto path = dir / "7.events";
  {
    RingFileBuilder first(path, {.domains = 2, .words_log2 = 5});
    first.set_name(4, "request");
    first.append(0, make::begin(5, 11));
  }
  RingFileBuilder second(path, {.domains = 2, .words_log2 = 5});
  EXPECT_EQ(second.tail(0), 0u);
  EXPECT_EQ(second.word(0, 1), 5u) << "old data stays";
  const auto* name = reinterpret_cast<const char*>(second.bytes().data()) + second.header().custom_events_offset + 512;
  EXPECT_STREQ(name, "request");
  RingFileBuilder smaller(path, {.domains = 1, .words_log2 = 4});
  EXPECT_EQ(std::filesystem::file_size(path), RingFileBuilder::file_size({.domains = 1, .words_log2 = 4}));
}

TEST(RingFileBuilder, NonsenseIsWrittenAsGivenAndFreedByItsTrueLength) {
  RingFileBuilder file({.domains = 1, .words_log2 = 4});
  file.append(0, {0, 0, 0});  // length 0 in the header, three words in truth
  for (int i = 0; i < 8; ++i) file.append(0, make::begin(1, 1));
  EXPECT_EQ(file.tail(0), 20u) << "3 + 6 * 2, one word of padding, 2 * 2";
  EXPECT_EQ(file.head(0), 5u);
  EXPECT_THROW(file.append(0, Words(16)), std::length_error);
  EXPECT_THROW(file.append(1, make::begin(1, 1)), std::out_of_range);
}

}  // namespace
}  // namespace rtev::test
