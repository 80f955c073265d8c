// SPDX-License-Identifier: MIT
// The producer mark of a ring file. Any program can write one.
#include <fstream>

#include "support/ring_file_builder.hpp"
#include "unit/ring/writer_fixture.hpp"

namespace rtev::test {
namespace {

class ProducerMarkTest : public WriterTest {
 protected:
  ProducerMarkTest() { RingFileBuilder(file_, {}); }

  static ProducerMark good() {
    return {.magic = ProducerMark::magic_value, .version = 1, .family = 0, .producer = "some producer"};
  }
  /// The producer that a reader finds in a file with the first `size` bytes of this mark after the names.
  std::optional<Producer> read(const ProducerMark& mark, std::size_t size = sizeof(ProducerMark)) const {
    std::filesystem::resize_file(file_, names_end_);
    std::ofstream(file_, std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(&mark), static_cast<std::streamsize>(size));
    auto reader = RingReader::open(file_);
    if (!reader) throw std::runtime_error(reader.error().message());
    return reader->producer();
  }

  const std::filesystem::path file_ = dir_ / "1.events";
  const std::uint64_t names_end_ = RingFileBuilder::file_size({});
};

TEST_F(ProducerMarkTest, IsRead) {
  EXPECT_EQ(read(good()), (Producer{.name = "some producer", .family = Family::before_5_3}));
  auto mark = good();
  mark.family = 1;
  std::ranges::fill(std::span(mark.producer).first(47), 'p');
  EXPECT_EQ(read(mark), (Producer{.name = std::string(47, 'p'), .family = Family::since_5_3}));
}

TEST_F(ProducerMarkTest, FileThatEndsBeforeItHasNone) {
  EXPECT_EQ(read(good(), 0), std::nullopt);
  EXPECT_EQ(read(good(), 63), std::nullopt);
}

TEST_F(ProducerMarkTest, InvalidMarksAreIgnored) {
  const auto read_with = [&](auto change) {
    ProducerMark mark = good();
    change(mark);
    return read(mark);
  };
  EXPECT_EQ(read_with([](ProducerMark& mark) { ++mark.magic; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.version = 0; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.version = 2; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.family = 2; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.family = UINT32_MAX; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.producer[0] = '\0'; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.producer[3] = '\x1b'; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { mark.producer[0] = '\xc3'; }), std::nullopt);
  EXPECT_EQ(read_with([](ProducerMark& mark) { std::ranges::fill(mark.producer, 'p'); }), std::nullopt);
}

TEST_F(ProducerMarkTest, IsReadEachTime) {
  read(good());
  auto reader = RingReader::open(file_);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->producer());
  std::filesystem::resize_file(file_, names_end_);
  EXPECT_FALSE(reader->producer()) << "OCaml's runtime reused the file";
}

}  // namespace
}  // namespace rtev::test
