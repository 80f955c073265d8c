// SPDX-License-Identifier: MIT
// Files that take long to read, for their size or beyond it.
#include "unwind/work_budget.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"
#include "unit/unwind/frametable_writer.hpp"
#include "unit/unwind/line_writer.hpp"
#include "unwind/process_code.hpp"

namespace rtev {
namespace {

using namespace test;

constexpr std::uint64_t ms = 1'000'000;

std::string repeated(const std::string& what, std::size_t times) {
  std::string all;
  all.reserve(what.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += what;
  return all;
}

/// One function whose instructions are these.
std::string eh_frame_of(const std::string& code_of_function) {
  EhFrameWriter cfi;
  cfi.function(cfi.common(def_cfa(7, 8) + saved(16, 1)), code, 0x40, code_of_function);
  return cfi.bytes();
}

/// Each instruction has an expression of its own, to be remembered.
std::string expressions(std::size_t count) {
  ByteWriter out;
  out.bytes.reserve(count * 10);
  for (std::size_t i = 0; i < count; ++i) out.u8(0x0f).u8(8).u64(i);
  return out.bytes;
}

std::string lines(std::size_t rows) {
  LineProgram program;
  program.at(code);
  const std::string row = LineProgram().row(1, 5).bytes();
  EXPECT_EQ(row.size(), 1U);
  return lines_4({}, {{"a.c", 0}}, program.raw(std::string(rows, row[0])));
}

std::string frametable(std::size_t calls) {
  std::vector<OCamlCall> all;
  all.reserve(calls);
  for (std::size_t i = 0; i < calls; ++i)
    all.push_back({.return_address = code + i % 0x1000, .places = {{"Main.f" + std::to_string(i), "main.ml", 3}}});
  FrametableWriter writer;
  writer.unit(std::move(all));
  return writer.bytes();
}

std::vector<ElfSymbol> symbols(std::size_t count) {
  std::vector<ElfSymbol> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back({.name = "f" + std::to_string(i), .value = code + i % 0x1000});
  return all;
}

std::vector<Elf64_Rela> relocations(std::size_t count) {
  return {count, {.r_offset = ObjectShape::data_address, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE), .r_addend = 1}};
}

TEST(WorkBudget, IsUsedUpByCpuTime) {
  WorkBudget none{0}, unlimited{WorkBudget::unlimited}, small{ms};
  EXPECT_FALSE(none.has_left());
  EXPECT_FALSE(none.has_left_now());
  EXPECT_TRUE(small.has_left());
  const std::uint64_t end_ns = thread_cpu_ns() + 10 * ms;
  while (small.has_left() && thread_cpu_ns() < end_ns) {
  }
  EXPECT_FALSE(small.has_left());
  EXPECT_TRUE(small.is_used_up());
  EXPECT_TRUE(unlimited.has_left_now());
}

TEST(WorkBudget, PartsThatTakeLongerAreLeftOut) {
  const ObjectShape honest{.eh_frame = eh_frame_of(advance(1) + cfa_offset(16)),
                           .symbols = {{.name = "work", .value = code, .size = 0x40}},
                           .build_id = "\xab\xcd\xef"};
  const auto with = [&](const auto& change) {
    ObjectShape shape = honest;
    change(shape);
    return shape;
  };
  struct {
    const char* what;
    ObjectShape shape;
  } const files[] = {
      {"states", with([](ObjectShape& s) { s.eh_frame = eh_frame_of(repeated(instructions({0x0a, 0x0b}), 150'000)); })},
      {"expressions", with([](ObjectShape& s) { s.eh_frame = eh_frame_of(expressions(30'000)); })},
      {"lines", with([](ObjectShape& s) { s.debug_line = lines(1'000'000); })},
      {"symbols", with([](ObjectShape& s) { s.symbols = symbols(50'000); })},
      {"relocations", with([](ObjectShape& s) {
         s.data = std::string(8, '\0');
         s.relocations = relocations(500'000);
       })},
      {"frametables", with([](ObjectShape& s) {
         s.data = frametable(20'000);
         s.symbols.push_back({.name = "caml_frametable", .value = FrametableWriter::address, .type = STT_OBJECT});
       })},
  };
  for (const auto& [what, shape] : files) {
    const UniqueFd file = memory_file(write_object(shape));
    auto bytes = build_object_tables(file.get(), {}, ms);
    ASSERT_TRUE(bytes) << what << bytes.error().message();
    const auto cut = ObjectTables::from_bytes(std::move(*bytes));
    EXPECT_TRUE(cut->is_cut()) << what;
    EXPECT_EQ(cut->build_id().size(), 3U) << what;
    EXPECT_TRUE(cut->address_of(ObjectShape::text_offset)) << what;
    EXPECT_FALSE(tables_of(shape).is_cut()) << what;
  }
  const ObjectTables whole = tables_of(honest);
  EXPECT_TRUE(whole.symbol_at(code));
  EXPECT_NE(whole.rule_number(code), object_tables_format::no_rule);
}

/// What stacks need least is what is missing first.
TEST(WorkBudget, FunctionsHaveNamesWhereLinesTakeTooLong) {
  const ObjectShape shape{.eh_frame = eh_frame_of(advance(1) + cfa_offset(16)),
                          .symbols = {{.name = "work", .value = code, .size = 0x40}},
                          .debug_line = lines(8'000'000)};
  const UniqueFd file = memory_file(write_object(shape));
  auto bytes = build_object_tables(file.get(), {}, 20 * ms);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const auto tables = ObjectTables::from_bytes(std::move(*bytes));
  EXPECT_TRUE(tables->is_cut());
  EXPECT_TRUE(tables->symbol_at(code));
  EXPECT_NE(tables->rule_number(code), object_tables_format::no_rule);
  EXPECT_FALSE(tables->line_at(code));
}

/// A program maps a library of 40 MB.
TEST(WorkBudget, AFileTakesTheHelperALimitedTime) {
  constexpr std::uint64_t most_ns = 1'600 * ms;
  const TempDir proc;
  const std::filesystem::path process = proc / "42";
  std::filesystem::create_directories(process / "map_files");
  std::ofstream(process / "maps") << "1000-2000 r-xp 00001000 00:01 7 /library\n";
  std::ofstream(proc / "library", std::ios::binary) << write_object({.eh_frame = eh_frame_of(expressions(4'000'000))});
  std::filesystem::create_symlink(proc / "library", process / "map_files/1000-2000");

  const std::uint64_t begin_ns = thread_cpu_ns();
  auto found = look_at_code(Procfs(proc.path()), 42, {});
  EXPECT_LT(thread_cpu_ns() - begin_ns, most_ns);
  ASSERT_EQ(found.size(), 1U);
  const auto tables = ObjectTables::from_fd(std::move(found[0].tables));
  ASSERT_TRUE(tables) << tables.error().message();
  EXPECT_TRUE(tables->is_cut());
}

}  // namespace
}  // namespace rtev
