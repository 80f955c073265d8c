// SPDX-License-Identifier: MIT
// Tables as the tracer takes them from a helper that it does not believe.
#include "unwind/object_tables.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "unit/unwind/frametable_writer.hpp"
#include "unwind/frame_names.hpp"
#include "unwind/vdso.hpp"

namespace rtev {
namespace {

using namespace test;

ObjectShape whole_shape() {
  EhFrameWriter cfi;
  const auto common = cfi.common(def_cfa(7, 8) + saved(16, 1));
  cfi.function(common, code, 0x40, advance(1) + cfa_offset(16));
  cfi.function(common, code + 0x40, 0x40, cfa_expression(instructions({0x77, 8})));
  FrametableWriter frames;
  frames.unit({{.return_address = code + 0x20, .places = {{"Main.f", "main.ml", 3}, {"Main.g", "main.ml", 9}}}});
  frames.runtime(code + 0x800, code + 0x900);
  return {.eh_frame = cfi.bytes(),
          .data = frames.bytes(),
          .symbols = {{.name = "caml_frametable", .value = FrametableWriter::address, .type = STT_OBJECT},
                      {.name = "camlMain.g_12", .value = code, .size = 0x40},
                      {.name = "__work_alias", .value = code + 0x40, .size = 0x40},
                      {.name = "work", .value = code + 0x40, .size = 0x40, .binding = STB_WEAK},
                      {.name = "local_work", .value = code + 0x40, .size = 0x40, .binding = STB_LOCAL},
                      {.name = "in_assembly", .value = code + 0x100, .size = 0},
                      {.name = "caml_raise_exn", .value = code + 0x200, .size = 8},
                      {.name = "caml_raise_exception", .value = code + 0x240, .size = 8},
                      {.name = "_start", .value = code + 0x300, .size = 16}},
          .build_id = "\xab\xcd\xef"};
}

std::vector<std::byte> whole_bytes() {
  return build_tables(write_object(whole_shape())).value();
}

UniqueFd sealed(const std::vector<std::byte>& bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) {
  UniqueFd fd{::memfd_create("tables", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

/// Looks up everything there can be.
void look_up_all(const ObjectTables& tables) {
  for (std::uint32_t address = 0; address < code + 0x400; address += 7) {
    const CfiRule rule = tables.rule(tables.rule_number(address));
    tables.expression(rule.head.cfa_value);
    for (const auto& saved : rule.saved) tables.expression(saved.value);
    tables.function_at(address);
    tables.is_root(address);
    for (const bool is_return : {false, true}) {
      const auto frames = name_frame(tables, address, is_return);
      ASSERT_FALSE(frames.empty());
      ASSERT_LE(frames.size(), ObjectTables::max_inlined);
    }
  }
  for (std::uint64_t offset = 0; offset < 0x3000; offset += 0x100) tables.address_of(offset);
  ASSERT_LE(tables.build_id().size(), object_tables_format::max_build_id);
}

TEST(ObjectTables, AnswersFromAMappedFile) {
  auto tables = ObjectTables::from_fd(sealed(whole_bytes()));
  ASSERT_TRUE(tables) << tables.error().message();
  EXPECT_EQ(tables->build_id().size(), 3u);
  EXPECT_EQ(tables->machine(), EM_X86_64);
  EXPECT_EQ(tables->address_of(ObjectShape::text_offset + 5), code + 5);
  EXPECT_FALSE(tables->address_of(ObjectShape::text_offset - 1));
  EXPECT_FALSE(tables->address_of(ObjectShape::text_offset + ObjectShape::text_size));
  EXPECT_NE(tables->rule_number(code), 0);
  EXPECT_EQ(tables->symbol_at(code + 0x7f)->name, "work");
  EXPECT_FALSE(tables->symbol_at(code + 0x80));
  EXPECT_EQ(tables->symbol_at(code + 0x1ff)->name, "in_assembly");
  EXPECT_EQ(tables->raise_code().begin, code + 0x200);
  EXPECT_EQ(tables->raise_code().end, code + 0x240);
  EXPECT_TRUE(tables->is_root(code + 0x308));
  EXPECT_FALSE(tables->is_root(code + 0x310));
  look_up_all(*tables);
}

TEST(ObjectTables, AddressesCountFromTheLinkBase) {
  ObjectShape shape{.base = 0x400000};
  shape.symbols = {{.name = "work", .value = shape.base + code, .size = 0x40}};
  const ObjectTables tables = tables_of(shape);
  EXPECT_EQ(tables.link_base(), shape.base);
  EXPECT_EQ(tables.address_of(ObjectShape::text_offset), code);
  ASSERT_TRUE(tables.symbol_at(code + 1));
  EXPECT_EQ(tables.symbol_at(code + 1)->name, "work");
}

TEST(ObjectTables, RefusesFilesThatCanChange) {
  const auto bytes = whole_bytes();
  EXPECT_FALSE(ObjectTables::from_fd(sealed(bytes, F_SEAL_SHRINK | F_SEAL_GROW)));
  EXPECT_FALSE(ObjectTables::from_fd(sealed(bytes, F_SEAL_WRITE | F_SEAL_GROW)));
  EXPECT_FALSE(ObjectTables::from_fd(UniqueFd{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)}));
  EXPECT_FALSE(ObjectTables::from_fd(UniqueFd{}));
  EXPECT_FALSE(ObjectTables::from_fd(sealed({})));
  // Sparse: pages would be taken when it is read.
  UniqueFd sparse{::memfd_create("tables", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  ASSERT_EQ(::ftruncate(sparse.get(), 64 << 20), 0);
  ASSERT_EQ(::fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  EXPECT_FALSE(ObjectTables::from_fd(std::move(sparse)));
}

TEST(ObjectTables, RefusesWhatIsCutOrOfAnotherKind) {
  const auto bytes = whole_bytes();
  for (std::size_t size : {std::size_t{0}, std::size_t{8}, sizeof(object_tables_format::Header), bytes.size() - 1})
    EXPECT_FALSE(ObjectTables::from_bytes({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}));
  auto other = bytes;
  other[0] = std::byte{0};
  EXPECT_FALSE(ObjectTables::from_bytes(other));
}

TEST(ObjectTables, WrongTablesGiveWrongAnswersOnly) {
  const auto intact = whole_bytes();
  std::mt19937 random{3};
  constexpr std::uint32_t telling[] = {0, 1, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
  for (int round = 0; round < 2000; ++round) {
    auto bytes = intact;
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t value = random() % 2 != 0 ? telling[random() % std::size(telling)] : random() % 4096;
      // Half of the damage is to the header, which says where the parts are.
      const std::size_t end = random() % 2 != 0 ? bytes.size() : sizeof(object_tables_format::Header);
      std::memcpy(&bytes[random() % (end / 4 - 1) * 4], &value, sizeof value);
    }
    const auto tables = ObjectTables::from_bytes(std::move(bytes));
    if (tables) look_up_all(*tables);
  }
}

TEST(ObjectTables, NamesFramesByPlaceThenFunctionThenSymbol) {
  const ObjectTables tables = tables_of(whole_shape());
  const auto call = name_frame(tables, code + 0x20, true);
  ASSERT_EQ(call.size(), 2u);
  EXPECT_EQ(call[0].function, "Main.f");
  EXPECT_EQ(call[0].line, 3u);
  EXPECT_TRUE(call[0].is_inlined);
  EXPECT_EQ(call[1].function, "Main.g");
  EXPECT_FALSE(call[1].is_inlined);
  // No call is there: the function is known, its line is not.
  const auto leaf = name_frame(tables, code + 0x10, false);
  ASSERT_EQ(leaf.size(), 1u);
  EXPECT_EQ(leaf[0].kind, NamedFrame::Kind::ocaml);
  EXPECT_EQ(leaf[0].function, "Main.g");
  EXPECT_EQ(leaf[0].file, "main.ml");
  EXPECT_EQ(leaf[0].line, 0u);
  const auto c = name_frame(tables, code + 0x50, false);
  EXPECT_EQ(c[0].kind, NamedFrame::Kind::c);
  EXPECT_EQ(c[0].function, "work");
  EXPECT_EQ(c[0].address, code + 0x40);
  EXPECT_EQ(name_frame(tables, code + 0x90, false)[0].kind, NamedFrame::Kind::unknown);
  // Without symbols OCaml code has names all the same.
  ObjectShape stripped = whole_shape();
  stripped.symbols.clear();
  EXPECT_EQ(name_frame(tables_of(stripped), code + 0x10, false)[0].function, "Main.g");
}

TEST(ObjectTables, ProgramsOfOtherKindsHaveNone) {
  EXPECT_FALSE(build_tables("#!/bin/sh\n"));
  EXPECT_FALSE(build_tables(write_object({.machine = EM_RISCV})));
  const auto nothing = build_tables(write_object({}));
  ASSERT_TRUE(nothing);
  look_up_all(ObjectTables::from_bytes(*nothing).value());
}

TEST(ObjectTables, FilesOfAnyDamageAreBuilt) {
  const std::string intact = write_object(whole_shape());
  std::mt19937 random{5};
  constexpr std::uint64_t telling[] = {0, 1, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
  for (int round = 0; round < 1500; ++round) {
    std::string file = intact;
    for (int i = 0; i < 3; ++i) {
      // The headers of segments, or what follows the code.
      const bool at_front = random() % 2 != 0;
      const std::size_t begin = at_front ? 0 : ObjectShape::text_offset + ObjectShape::text_size;
      const std::size_t end = at_front ? sizeof(Elf64_Ehdr) + 9 * sizeof(Elf64_Phdr) : file.size();
      std::memcpy(&file[begin + random() % (end - begin - 8)], &telling[random() % std::size(telling)],
                  1u << random() % 4);
    }
    if (auto bytes = build_tables(file)) {
      const auto tables = ObjectTables::from_bytes(std::move(*bytes));
      ASSERT_TRUE(tables);
      look_up_all(*tables);
    }
  }
}

TEST(ObjectTables, KnowTheKernelsCode) {
  const auto tables = vdso_tables();
  ASSERT_TRUE(tables) << tables.error().message();
  std::size_t rules = 0;
  for (std::uint32_t address = 0; address < 8192; ++address) rules += tables->rule_number(address) != 0;
  EXPECT_GT(rules, 100u);
}

}  // namespace
}  // namespace rtev
