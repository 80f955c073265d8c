// SPDX-License-Identifier: MIT
// Frametables of OCaml's versions, with and without symbols, and damaged ones.
#include "unwind/frametable_reader.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "unit/unwind/frametable_writer.hpp"

namespace rtev {
namespace {

using namespace test;

const std::vector<OCamlPlace> inlined{{"Main.small", "main.ml", 7}, {"Main.run", "main.ml", 12}};

/// Two units and the runtime, in the order that the compiler writes them.
FrametableWriter program(bool wide_places = true) {
  FrametableWriter writer(wide_places);
  writer.unit({{.return_address = code + 0x90, .frame_bytes = 32, .places = inlined, .live = 3},
               {.return_address = code + 0x40, .frame_bytes = 16, .places = {{"Main.run", "main.ml", 15, wide_places}}},
               {.return_address = code + 0x20, .frame_bytes = 8}});
  writer.runtime(code + 0x800, code + 0x900);
  writer.unit({{.return_address = code + 0x110,
                .frame_bytes = 48,
                .places = {{"Stdlib__List.map", "list.ml", 90}},
                .live = 2,
                .allocations = 3}});
  return writer;
}

const std::vector<ElfSymbol> list_symbol{
    {.name = "caml_frametable", .value = FrametableWriter::address, .type = STT_OBJECT}};

/// "f a.ml:1, g b.ml:2" of the places of a call; "-" if there is no such call.
std::string places_of(const ObjectTables& tables, std::uint64_t address) {
  const auto call = tables.call_at(static_cast<std::uint32_t>(address));
  if (!call) return "-";
  std::string text;
  tables.for_each_place(*call, [&](const SourcePlace& place, bool is_inlined) {
    text += std::string(place.function) + " " + std::string(place.file) + ":" + std::to_string(place.line);
    if (is_inlined) text += ", ";
  });
  return text;
}

void expect_program(const ObjectTables& tables) {
  EXPECT_EQ(places_of(tables, code + 0x20), "");
  EXPECT_EQ(places_of(tables, code + 0x40), "Main.run main.ml:15");
  EXPECT_EQ(places_of(tables, code + 0x90), "Main.small main.ml:7, Main.run main.ml:12");
  EXPECT_EQ(places_of(tables, code + 0x110), "Stdlib__List.map list.ml:90");
  EXPECT_EQ(places_of(tables, code + 0x91), "-");
  ASSERT_TRUE(tables.call_at(code + 0x90));
  EXPECT_EQ(tables.call_at(code + 0x90)->frame_bytes(), 32u);
  EXPECT_EQ(tables.call_at(code + 0x110)->frame_bytes(), 48u);
  ASSERT_TRUE(tables.call_at(code + 0x900));
  EXPECT_TRUE(tables.call_at(code + 0x900)->returns_to_c());
  EXPECT_EQ(tables.call_from(code + 0x41)->return_address, code + 0x90);
  EXPECT_FALSE(tables.call_from(code + 0x901));
}

TEST(FrametableReader, ReadsWhatTheSymbolPointsAt) {
  expect_program(tables_of({.data = program().bytes(), .symbols = list_symbol}));
}

TEST(FrametableReader, ReadsTheLayoutBefore52) {
  expect_program(tables_of({.data = program(false).bytes(), .symbols = list_symbol}));
}

TEST(FrametableReader, FindsTablesWithoutSymbols) {
  expect_program(tables_of({.data = program().bytes()}));
  // Not at the beginning of the data, and not without other pointers before.
  ByteWriter before;
  before.u64(1).u64(FrametableWriter::address);
  EXPECT_EQ(places_of(tables_of({.data = before.bytes}), code), "-");
}

TEST(FrametableReader, AppliesRelocations) {
  // A position-independent program holds zeros where addresses are.
  std::string data = program().bytes();
  std::vector<Elf64_Rela> relocations;
  for (std::size_t at = 0; at + 8 <= data.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &data[at], sizeof word);
    const bool is_address = (word >= code && word < code + ObjectShape::text_size) ||
                            (word >= FrametableWriter::address && word < FrametableWriter::address + data.size());
    if (!is_address) continue;
    std::memset(&data[at], 0, sizeof word);
    relocations.push_back({FrametableWriter::address + at, R_X86_64_RELATIVE, static_cast<std::int64_t>(word)});
  }
  ASSERT_GT(relocations.size(), 6u);
  EXPECT_EQ(places_of(tables_of({.data = data, .symbols = list_symbol}), code + 0x40), "-");
  expect_program(tables_of({.data = data, .symbols = list_symbol, .relocations = relocations}));
  expect_program(tables_of({.data = data, .relocations = relocations}));
  // They end where they say, not where the file does.
  relocations.push_back({UINT64_MAX - 3, R_X86_64_RELATIVE, 1});
  relocations.push_back({FrametableWriter::address + data.size() - 4, R_X86_64_RELATIVE, 1});
  relocations.push_back({0, ELF64_R_INFO(77, R_X86_64_64), 1});
  expect_program(tables_of({.data = data, .symbols = list_symbol, .relocations = relocations}));
}

TEST(FrametableReader, ReadsTablesOfPluginsByTheirSymbols) {
  const std::string data = program().bytes();
  std::uint64_t first = 0, last = 0;
  std::memcpy(&first, data.data(), sizeof first);
  std::memcpy(&last, data.data() + 16, sizeof last);
  const ObjectTables tables = tables_of({.data = "\1" + data.substr(1, 7) + std::string(16, '\1') + data.substr(24),
                                         .symbols = {{.name = "camlA.frametable", .value = first, .type = STT_OBJECT},
                                                     {.name = "camlB__frametable", .value = last, .type = STT_NOTYPE},
                                                     {.name = "caml_frametables", .value = 1}}});
  EXPECT_EQ(places_of(tables, code + 0x90), "Main.small main.ml:7, Main.run main.ml:12");
  EXPECT_EQ(places_of(tables, code + 0x110), "Stdlib__List.map list.ml:90");
  EXPECT_EQ(places_of(tables, code + 0x900), "-");
}

TEST(FrametableReader, AbsurdCountsCostNothing) {
  for (const std::uint64_t count : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, UINT64_MAX}) {
    std::string data = program().bytes();
    std::uint64_t first = 0;
    std::memcpy(&first, data.data(), sizeof first);
    std::memcpy(&data[first - FrametableWriter::address], &count, sizeof count);
    const ObjectTables tables = tables_of({.data = data, .symbols = list_symbol});
    EXPECT_EQ(places_of(tables, code + 0x40), "Main.run main.ml:15");
  }
}

TEST(FrametableReader, AListWithoutAnEndIsRead) {
  // Each entry is the same table, up to the end of the data.
  ByteWriter data;
  for (int i = 0; i < 100'000; ++i) data.u64(FrametableWriter::address + 800'000);
  data.u64(1).u64(code + 0x20).u16(16).u16(0).u32(0);
  const ObjectTables tables = tables_of({.data = data.bytes, .symbols = list_symbol});
  EXPECT_EQ(places_of(tables, code + 0x20), "");
  EXPECT_LT(tables.bytes(), 4096u);
}

TEST(FrametableReader, SurvivesAnyDamage) {
  const std::string intact = program().bytes();
  std::mt19937 random{11};
  for (int round = 0; round < 3000; ++round) {
    std::string data = intact;
    // Beyond the list, so that something is read.
    for (int i = 0; i < 3; ++i) data[32 + random() % (data.size() - 32)] = static_cast<char>(random());
    data.resize(data.size() - random() % 32);
    const ObjectTables tables = tables_of({.data = data, .symbols = list_symbol});
    for (auto call = tables.call_from(0); call; call = tables.call_from(call->return_address + 1))
      places_of(tables, call->return_address);
  }
}

}  // namespace
}  // namespace rtev
