// SPDX-License-Identifier: MIT
// ELF files made to mislead or to exhaust who reads them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

#include "unit/inspect/runtime_shapes.hpp"

namespace rtev {
namespace {

using namespace test;

TEST(HostileBinary, NamesThatDoNotEndAreNoNames) {
  std::string bytes = write_elf(ElfShape{.dynsym = {{.name = "caml_runtime_events_init", .value = text}}});
  ASSERT_TRUE(inspect(bytes));
  // The string table is made to end just before the terminator of its last name.
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t names = header.e_shoff + (header.e_shnum - 1u) * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
  std::uint64_t size = 0;
  std::memcpy(&size, &bytes[names], sizeof size);
  --size;
  std::memcpy(&bytes[names], &size, sizeof size);
  EXPECT_FALSE(inspect(bytes));
}

TEST(HostileBinary, HugeClaimsCostLittle) {
  // Sparse, so that everything claimed is there to be read: a terabyte of symbols, of names and of constants.
  constexpr std::uint64_t huge = 1ull << 40;
  ElfShape shape = program(3);
  std::string bytes = write_elf(shape);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (std::size_t i = 1; i < header.e_shnum; ++i)
    std::memcpy(&bytes[header.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size)], &huge, sizeof huge);
  const UniqueFd fd = memory_file(bytes);
  ASSERT_EQ(::ftruncate(fd.get(), huge), 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(inspect_binary(fd.get()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{20});
}

TEST(HostileBinary, SurvivesAnyDamage) {
  const std::string intact = write_elf(program(5));
  std::mt19937_64 random{20220805};
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  constexpr std::uint64_t telling[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
  // Where damage tells most: the ELF header with the segments, and everything behind the code.
  const std::size_t headers = sizeof(Elf64_Ehdr) + 8 * sizeof(Elf64_Phdr);
  const std::size_t tables = ElfShape::text_offset + ElfShape::text_size;

  const auto begin = std::chrono::steady_clock::now();
  std::size_t recognised = 0;
  constexpr int rounds = 5000;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = intact;
    for (std::size_t hits = 1 + below(6); hits > 0; --hits) {
      const std::size_t at = below(2) == 0 ? below(headers) : tables + below(bytes.size() - tables);
      const std::uint64_t value = below(2) == 0 ? telling[below(std::size(telling))] : random();
      const std::size_t width = std::min<std::size_t>(std::size_t{1} << below(4), bytes.size() - at);
      std::memcpy(&bytes[at], &value, width);
    }
    if (below(8) == 0) bytes.resize(below(bytes.size()));
    const UniqueFd fd = memory_file(bytes);
    const auto result = inspect_binary(fd.get());
    ASSERT_TRUE(result) << "round " << round << ": " << result.error().why;
    if (!*result) continue;
    ++recognised;
    for (const ProbePoint& point : (*result)->probes) ASSERT_LT(point.file_offset, bytes.size()) << "round " << round;
  }
  // Damage that went deep and damage that did not: neither alone would show much.
  EXPECT_GT(recognised, 100u);
  EXPECT_LT(recognised, static_cast<std::size_t>(rounds));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{30});
}

}  // namespace
}  // namespace rtev
