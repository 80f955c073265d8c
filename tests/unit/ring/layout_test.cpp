// SPDX-License-Identifier: MIT
// Every header field with wrong values: a root process computes addresses from them.
#include "ring/layout.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rtev {
namespace {

constexpr std::uint64_t names_size = user_event_slots * user_event_name_bytes;
constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

struct File {
  FileHeader header;
  std::uint64_t size;
};

File default_file() {
  return {{.version = 1,
           .max_domains = 128,
           .ring_header_size_bytes = 80,
           .ring_size_bytes = 524'288,
           .ring_size_elements = 65'536,
           .headers_offset = 64,
           .data_offset = 10'304,
           .custom_events_offset = 67'119'168},
          68'167'744};
}

File file_of_5_0() {
  File file = default_file();
  file.header.custom_events_offset = 0;
  file.size = 67'119'168;
  return file;
}

std::string why(const File& file) {
  const auto layout = check_layout(file.header, file.size);
  if (layout) return "valid";
  const std::string& text = layout.error().why;
  return text.substr(0, text.find(", in a file of "));
}

TEST(Layout, DefaultsOfARealFile) {
  const File file = default_file();
  const auto layout = check_layout(file.header, file.size);
  ASSERT_TRUE(layout) << layout.error().message();
  EXPECT_EQ(*layout, (Layout{.rings = 128,
                             .ring_words = 65'536,
                             .headers_offset = 64,
                             .ring_header_stride = 80,
                             .data_offset = 10'304,
                             .names_offset = 67'119'168,
                             .file_size = 68'167'744}));
}

TEST(Layout, Ocaml50HasNoNamesWhateverItsLastFieldHolds) {
  File file = file_of_5_0();
  for (const std::uint64_t stale : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{67'119'168}, huge}) {
    file.header.custom_events_offset = stale;
    const auto layout = check_layout(file.header, file.size);
    ASSERT_TRUE(layout) << stale;
    EXPECT_EQ(layout->names_offset, 0u);
  }
}

TEST(Layout, FileTooSmallByOneByte) {
  File file = default_file();
  --file.size;
  EXPECT_EQ(why(file), "header field custom_events_offset is 67119168");
  file = file_of_5_0();
  --file.size;
  EXPECT_EQ(why(file), "header field data_offset is 10304");
  for (const std::uint64_t size : {10'303, 63, 0}) {
    file.size = size;
    EXPECT_NE(why(file), "valid") << size;
  }
}

/// As OCaml 5.3 makes it with OCAMLRUNPARAM=e=22, e=31, and e=18,d=2048: the length of the file does not fit into its
/// int.
TEST(Layout, RingsThatTheRuntimeCannotMake) {
  constexpr std::uint64_t sign = 0xffffffff00000000;
  const struct {
    std::uint64_t domains, words, size;
  } files[] = {{128, 1 << 22, 1'058'880}, {128, std::uint64_t{1} << 31, 1'058'880}, {2048, 1 << 18, 1'212'480}};
  for (const auto& [domains, words, size] : files) {
    File file = default_file();
    file.header.max_domains = domains;
    file.header.ring_size_elements = words >> 31 == 0 ? words : words | sign;
    file.header.ring_size_bytes = file.header.ring_size_elements * 8;
    file.header.data_offset = 64 + 80 * domains;
    file.header.custom_events_offset = file.header.data_offset + domains * file.header.ring_size_bytes;
    for (const std::uint64_t names : {names_size, std::uint64_t{0}}) {
      file.size = size - names_size + names;
      const auto layout = check_layout(file.header, file.size);
      ASSERT_FALSE(layout);
      EXPECT_EQ(layout.error().code, EFBIG);
      EXPECT_NE(layout.error().why.find("OCAMLRUNPARAM"), std::string::npos) << layout.error().message();
      ++file.size;
      EXPECT_EQ(check_layout(file.header, file.size).error().code, 0) << "it was not made by the runtime";
    }
  }
}

TEST(Layout, AWholeFileOfMoreThan2GiBIsFine) {
  File file = default_file();
  file.header.ring_size_elements = std::uint64_t{1} << 21;
  file.header.ring_size_bytes = file.header.ring_size_elements * 8;
  file.header.custom_events_offset = file.header.data_offset + file.header.max_domains * file.header.ring_size_bytes;
  file.size = file.header.custom_events_offset + names_size;
  ASSERT_GT(file.size, std::uint64_t{1} << 31);
  EXPECT_TRUE(check_layout(file.header, file.size));
}

TEST(Layout, LargerFileIsFine) {
  File file = default_file();
  file.size += 4096;
  EXPECT_EQ(why(file), "valid");
}

TEST(Layout, HeaderOfARingThatIsBeingCreated) {
  // The runtime writes the fields in this order; those that follow are still zero.
  constexpr struct {
    std::uint64_t FileHeader::* field;
    const char* error;  ///< before the field is written
  } steps[] = {
      {&FileHeader::version, "its header is not that of a runtime events file"},
      {&FileHeader::max_domains, "header field max_domains is 0"},
      {&FileHeader::ring_header_size_bytes, "header field ring_header_size_bytes is 0"},
      {&FileHeader::ring_size_bytes, "header field ring_size_elements is 0"},
      {&FileHeader::ring_size_elements, "header field ring_size_elements is 0"},
      {&FileHeader::headers_offset, "header field headers_offset is 0"},
      {&FileHeader::data_offset, "header field data_offset is 0"},
      {&FileHeader::custom_events_offset, "header field custom_events_offset is 0"},
  };
  const File whole = default_file();
  File file{.header = {}, .size = whole.size};
  for (const auto& [field, error] : steps) {
    EXPECT_EQ(why(file), error);
    file.header.*field = whole.header.*field;
  }
  EXPECT_EQ(why(file), "valid");
}

struct WrongField {
  const char* name;
  std::uint64_t FileHeader::* field;
  std::vector<std::uint64_t> values;
  bool in_5_0 = true;  ///< wrong in that format as well
};

class WrongFieldTest : public testing::TestWithParam<WrongField> {};

TEST_P(WrongFieldTest, IsRefused) {
  const WrongField& wrong = GetParam();
  for (const std::uint64_t value : wrong.values) {
    File file = default_file();
    file.header.*wrong.field = value;
    EXPECT_NE(why(file), "valid") << value;
    file = file_of_5_0();
    file.header.*wrong.field = value;
    if (wrong.in_5_0) {
      EXPECT_NE(why(file), "valid") << "5.0: " << value;
    }
  }
}

constexpr std::uint64_t bit(unsigned number) {
  return std::uint64_t{1} << number;
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongFieldTest,
    testing::Values(
        WrongField{"version", &FileHeader::version, {0, 2, 100, huge}},
        WrongField{"max_domains", &FileHeader::max_domains, {0, 129, 4096, 4097, bit(32), bit(57), bit(61), huge}},
        WrongField{"ring_header_size_bytes",
                   &FileHeader::ring_header_size_bytes,
                   {0, 1, 8, 15, 79, 81, 88, 4096, 4104, bit(57), bit(61), huge, huge - 7}},
        WrongField{"ring_size_bytes",
                   &FileHeader::ring_size_bytes,
                   {0, 1, 8, 524'280, 524'287, 524'289, 524'296, bit(57), bit(63), huge}},
        // 2^61 elements of 8 bytes are 0 bytes modulo 2^64.
        WrongField{"ring_size_elements",
                   &FileHeader::ring_size_elements,
                   {0, 1, 32'768, 65'535, 65'537, 131'072, bit(60), bit(61), bit(62), bit(63), huge}},
        WrongField{"headers_offset",
                   &FileHeader::headers_offset,
                   {0, 1, 56, 63, 65, 68, 72, 10'304, bit(57), huge - 7, huge - 10'239, huge}},
        WrongField{"data_offset",
                   &FileHeader::data_offset,
                   {0, 1, 64, 10'296, 10'303, 10'305, 67'119'168, bit(63), huge - 67'108'863, huge - 7, huge}},
        WrongField{"custom_events_offset",
                   &FileHeader::custom_events_offset,
                   {0, 1, 64, 10'304, 67'119'160, 67'119'167, 67'119'169, 67'119'176, huge - names_size + 1, huge},
                   false}),
    [](const auto& each) { return each.param.name; });

TEST(Layout, ElementsAndBytesThatAgreeOnlyModulo64Bits) {
  File file = default_file();
  file.header.ring_size_elements = bit(61);
  file.header.ring_size_bytes = 0;
  EXPECT_NE(why(file), "valid");
  // A file of an impossible size does not pass either.
  file.size = huge;
  EXPECT_NE(why(file), "valid");
  file.header.ring_size_elements = bit(60);
  file.header.ring_size_bytes = bit(63);
  EXPECT_EQ(why(file), "header field ring_size_bytes is " + std::to_string(bit(63))) << "128 rings of 2^63 bytes";
}

TEST(Layout, SmallestAndLargestRings) {
  // d=1, e=4 and d=4096, e=4, both in the format of 5.3.
  for (const std::uint64_t rings : {1u, max_domains}) {
    File file = default_file();
    file.header.max_domains = rings;
    file.header.ring_size_elements = 16;
    file.header.ring_size_bytes = 128;
    file.header.data_offset = 64 + rings * 80;
    file.header.custom_events_offset = file.header.data_offset + rings * 128;
    file.size = file.header.custom_events_offset + names_size;
    const auto layout = check_layout(file.header, file.size);
    ASSERT_TRUE(layout) << layout.error().message();
    EXPECT_EQ(layout->rings, rings);
    EXPECT_EQ(layout->ring_words, 16u);
  }
}

TEST(Layout, AcceptedLayoutsLieInsideTheFile) {
  std::mt19937_64 random(7);
  const auto number = [&]() -> std::uint64_t {
    const std::uint64_t bits = random() >> (random() % 64);
    switch (random() % 4) {
      case 0:
        return bits;
      case 1:
        return std::uint64_t{1} << random() % 64;
      case 2:
        return bits & ~std::uint64_t{7};
      default:
        return random() % 256;
    }
  };
  std::uint64_t valid = 0;
  for (int i = 0; i < 200'000; ++i) {
    File file = random() % 2 ? default_file() : file_of_5_0();
    for (std::uint64_t FileHeader::* field :
         {&FileHeader::max_domains, &FileHeader::ring_header_size_bytes, &FileHeader::headers_offset,
          &FileHeader::data_offset, &FileHeader::custom_events_offset}) {
      if (random() % 4 == 0) file.header.*field = number();
    }
    if (random() % 4 == 0) {
      file.header.ring_size_elements = number();
      file.header.ring_size_bytes = file.header.ring_size_elements * 8;
    }
    if (random() % 4 == 0) file.size = number();
    const auto layout = check_layout(file.header, file.size);
    if (!layout) continue;
    ++valid;
    using Wide = unsigned __int128;
    const Wide headers_end = Wide{layout->headers_offset} + Wide{layout->rings} * layout->ring_header_stride;
    const Wide data_end = Wide{layout->data_offset} + Wide{layout->rings} * layout->ring_words * 8;
    ASSERT_GE(layout->headers_offset, sizeof(FileHeader));
    ASSERT_TRUE(headers_end <= layout->data_offset && data_end <= file.size);
    ASSERT_TRUE(layout->names_offset == 0 ||
                (data_end <= layout->names_offset && Wide{layout->names_offset} + names_size <= file.size));
    ASSERT_EQ((layout->headers_offset | layout->data_offset | layout->names_offset | layout->ring_header_stride) % 8,
              0u);
  }
  EXPECT_GT(valid, 1000u);
}

}  // namespace
}  // namespace rtev
