// SPDX-License-Identifier: MIT
#include "unwind/compressed_section.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <span>
#include <string>

#include "unit/unwind/line_writer.hpp"

namespace rtev {
namespace {

using namespace test;

std::string compressed_section(const std::string& text, unsigned type = ELFCOMPRESS_ZLIB,
                               std::uint64_t claimed = UINT64_MAX) {
  ByteWriter section;
  section.u32(type).u32(0).u64(claimed == UINT64_MAX ? text.size() : claimed).u64(1);
  uLongf size = ::compressBound(text.size());
  std::string bytes(size, '\0');
  EXPECT_EQ(::compress(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                       text.size()),
            Z_OK);
  return section.bytes + bytes.substr(0, size);
}

std::string decompressed(const std::string& section, std::uint64_t limit = 1u << 20,
                         std::uint64_t cpu_ns = WorkBudget::unlimited) {
  WorkBudget budget(cpu_ns);
  const auto bytes = decompress_section(std::as_bytes(std::span{section}), limit, budget);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(CompressedSection, IsReadUpToTheLimit) {
  const std::string text(700'000, 'x');
  EXPECT_EQ(decompressed(compressed_section(text)), text);
  EXPECT_EQ(decompressed(compressed_section(text), 1000), text.substr(0, 1000));
  EXPECT_EQ(decompressed(compressed_section({})), "");
}

TEST(CompressedSection, ClaimsAreNotTrusted) {
  EXPECT_EQ(decompressed(compressed_section("text", ELFCOMPRESS_ZLIB, UINT64_MAX - 1), UINT64_MAX), "text");
  EXPECT_EQ(decompressed(compressed_section("text", ELFCOMPRESS_ZLIB, 2)), "te");
  EXPECT_EQ(decompressed(compressed_section("text", ELFCOMPRESS_ZLIB, 0)), "");
}

TEST(CompressedSection, BrokenOnesGiveWhatTheyHave) {
  const std::string section = compressed_section(std::string(5000, 'a') + "end");
  for (std::size_t length = 0; length < section.size(); ++length)
    EXPECT_TRUE(decompressed(section.substr(0, length)).size() <= 5003) << length;
  EXPECT_EQ(decompressed(section + "more"), std::string(5000, 'a') + "end");
  EXPECT_EQ(decompressed(section.substr(0, sizeof(Elf64_Chdr)) + "no zlib"), "");
}

TEST(CompressedSection, IsNotReadWithoutABudgetOrIfCompressedInAnotherWay) {
  EXPECT_EQ(decompressed(compressed_section("text"), 1u << 20, 0), "");
  constexpr unsigned zstd = 2;
  EXPECT_EQ(decompressed(compressed_section("text", zstd)), "");
}

TEST(CompressedSection, LinesAreThoseOfAnUncompressedOne) {
  LineProgram program;
  program.at(code + 0x10).row(0, 9).end(8);
  std::string names;
  const std::string lines = lines_5({"/build", "src"}, {{"main.ml", 1}, {"main.ml", 1}}, program, names);
  const auto place = [](const ObjectTables& tables) {
    const auto line = tables.line_at(code + 0x12);
    return line ? std::string(line->file) + ':' + std::to_string(line->number) : "";
  };
  EXPECT_EQ(place(tables_of({.debug_line = lines, .debug_line_str = names})), "src/main.ml:10");
  EXPECT_EQ(place(tables_of({.debug_line = compressed_section(lines),
                             .debug_line_str = compressed_section(names),
                             .debug_flags = SHF_COMPRESSED})),
            "src/main.ml:10");
}

}  // namespace
}  // namespace rtev
