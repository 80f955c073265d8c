// SPDX-License-Identifier: MIT
#include "inspect/binary.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "unit/inspect/runtime_shapes.hpp"

namespace rtev {
namespace {

using namespace test;

std::uint64_t address_of(const std::vector<ElfSymbol>& symbols, std::string_view name) {
  return std::ranges::find(symbols, name, &ElfSymbol::name)->value;
}

std::optional<std::uint64_t> probe(const RuntimeBinary& runtime, rtev_probe function) {
  const auto found = std::ranges::find(runtime.probes, function, &ProbePoint::function);
  return found == runtime.probes.end() ? std::nullopt : std::optional{found->file_offset};
}

struct VersionCase {
  int minor;
  Family family;
  std::uint32_t id_offset;
};

class BinaryVersion : public testing::TestWithParam<VersionCase> {};

TEST_P(BinaryVersion, IsToldByTheSymbols) {
  const auto& [minor, family, id_offset] = GetParam();
  ElfShape stripped = program(minor);
  stripped.symtab.clear();
  ElfShape is_static = program(minor);
  is_static.dynsym.clear();
  for (const ElfShape& shape : {program(minor), stripped, is_static}) {
    const auto runtime = inspect(shape);
    ASSERT_TRUE(runtime);
    EXPECT_EQ(runtime->version, "5." + std::to_string(minor));
    EXPECT_EQ(runtime->family, family);
    EXPECT_EQ(runtime->id_offset, id_offset);
    EXPECT_FALSE(runtime->shared_library);
  }
}

TEST(BinaryRelease, IsSaidByBytecode) {
  const auto release = [](const std::string& text) {
    ElfShape shape = program(3);
    shape.rodata = "first" + std::string(1, '\0') + text;
    return inspect(shape)->full_version;
  };
  EXPECT_EQ(release("The OCaml runtime, version 5.3.0\n"), "5.3.0");
  EXPECT_EQ(release("The OCaml runtime, version 5.2.0+ox\n"), "5.2.0+ox");
  EXPECT_EQ(release("The OCaml runtime, version " + std::string(100, '5')).size(), 32u) << "cut";
  EXPECT_EQ(release("The OCaml runtime, version \x1b[2J"), "");
  EXPECT_EQ(release("The OCaml runtime"), "");
}

TEST(BinaryRelease, IsOxCamlByItsFunctions) {
  ElfShape shape = program(3);
  EXPECT_FALSE(inspect(shape)->is_oxcaml);
  shape.symtab.push_back({.name = "caml_alloc_local", .value = text + 0x600});
  EXPECT_TRUE(inspect(shape)->is_oxcaml);
}

TEST_P(BinaryVersion, HasItsProbes) {
  const int minor = GetParam().minor;
  const auto symbols = all_symbols(minor);
  const auto runtime = inspect(program(minor));
  ASSERT_TRUE(runtime);
  const auto offset = [&](std::string_view name) {
    return address_of(symbols, name) - ElfShape::text_address + ElfShape::text_offset;
  };
  const std::string ml = minor >= 2 ? "caml_ml_" : "caml_";
  std::vector<ProbePoint> expected{
      {RTEV_PROBE_INIT, offset("caml_runtime_events_init")},
      {RTEV_PROBE_C_START, offset("caml_runtime_events_start")},
      {RTEV_PROBE_PAUSE, offset(ml + "runtime_events_pause")},
      {RTEV_PROBE_RESUME, offset(ml + "runtime_events_resume")},
      {RTEV_PROBE_STW_CREATE, offset("stw_create_runtime_events")},
      {RTEV_PROBE_STW_TEARDOWN, offset("stw_teardown_runtime_events")},
      {RTEV_PROBE_DESTROY, offset("caml_runtime_events_destroy")},
      {RTEV_PROBE_POST_FORK, offset("caml_runtime_events_post_fork")},
  };
  if (minor >= 2) expected.push_back({RTEV_PROBE_START, offset("caml_ml_runtime_events_start")});
  EXPECT_THAT(runtime->probes, testing::UnorderedElementsAreArray(expected));
}

TEST_P(BinaryVersion, HasItsStackSites) {
  const int minor = GetParam().minor;
  ElfShape shape = program(minor);
  const auto bytecode = inspect(shape);
  ASSERT_TRUE(bytecode);
  EXPECT_EQ(bytecode->stack_sites.layout.current_stack, 0) << "no code of OCaml's own";
  EXPECT_FALSE(bytecode->stack_sites.allocation_offset);
  shape.symtab.push_back({.name = "caml_alloc_small_dispatch", .value = text + 0xb00});
  shape.symtab.push_back({.name = "caml_system__code_begin", .value = text + 0xc00, .size = 0, .type = STT_NOTYPE});
  shape.symtab.push_back({.name = "caml_raise_exn", .value = text + 0xc40, .size = 0x20});
  shape.symtab.push_back({.name = "caml_raise_exception", .value = text + 0xc80, .size = 0x10});
  shape.symtab.push_back({.name = "caml_system__code_end", .value = text + 0xd00, .size = 0, .type = STT_NOTYPE});
  const auto native = inspect(shape);
  ASSERT_TRUE(native);
  const StackSites& sites = native->stack_sites;
  EXPECT_EQ(sites.allocation_offset, ElfShape::text_offset + 0xb00);
  EXPECT_EQ(sites.system.begin, text + 0xc00);
  EXPECT_EQ(sites.system.end, text + 0xd00);
  EXPECT_EQ(sites.raise.begin, text + 0xc40);
  EXPECT_EQ(sites.raise.end, text + 0xc90);
  const StackLayout first{.young_ptr = 1,
                          .young_start = 2,
                          .young_end = 3,
                          .young_trigger = 2,
                          .current_stack = 4,
                          .c_stack = 7,
                          .domain_state = 1};
  StackLayout later = first;
  later.young_trigger = 4;
  later.current_stack = 5;
  later.c_stack = 8;
  later.domain_state = minor >= 4 ? 2 : 1;
  later.local_roots = minor == 1 ? 19 : minor == 3 ? 20 : minor == 4 ? 24 : 0;
  EXPECT_EQ(sites.layout, minor == 0 ? first : minor <= 4 ? later : StackLayout{}) << "of later ones nothing is known";
}

INSTANTIATE_TEST_SUITE_P(All, BinaryVersion,
                         testing::Values(VersionCase{0, Family::before_5_3, 280},
                                         VersionCase{1, Family::before_5_3, 280},
                                         VersionCase{2, Family::before_5_3, 280},
                                         VersionCase{3, Family::since_5_3, 288}, VersionCase{4, Family::since_5_3, 320},
                                         VersionCase{5, Family::since_5_3, 320}),
                         [](const auto& version) { return "OCaml5_" + std::to_string(version.param.minor); });

TEST(Binary, StrippedProgramKeepsWhatItExports) {
  ElfShape shape = program(3);
  shape.symtab.clear();
  const auto runtime = inspect(shape);
  ASSERT_TRUE(runtime);
  EXPECT_TRUE(probe(*runtime, RTEV_PROBE_START));
  EXPECT_FALSE(probe(*runtime, RTEV_PROBE_STW_CREATE));
  EXPECT_EQ(runtime->caml_state_tls, -0x18);
  EXPECT_EQ(runtime->domain_self_tls, 0);
  EXPECT_EQ(runtime->backup_thread.end, 0u);
}

TEST(Binary, FindsThreadRoutinesAtLinkTimeAddresses) {
  ElfShape shape = program(3);
  shape.base = 0x400000;
  for (auto* table : {&shape.dynsym, &shape.symtab})
    for (ElfSymbol& symbol : *table)
      if (symbol.type == STT_FUNC) symbol.value += shape.base;
  const auto runtime = inspect(shape);
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->link_base, 0x400000u);
  EXPECT_EQ(runtime->backup_thread.begin, 0x400000 + text + 0x900);
  EXPECT_EQ(runtime->backup_thread.end, 0x400000 + text + 0xa00);
  EXPECT_EQ(runtime->tick_thread.begin, 0x400000 + text + 0xa00);
  EXPECT_EQ(runtime->tick_thread.end, 0x400000 + text + 0xa80);
  EXPECT_EQ(probe(*runtime, RTEV_PROBE_STW_CREATE), ElfShape::text_offset + 0x800);
}

TEST(Binary, ThreadLocalVariables) {
  struct Case {
    std::uint16_t machine;
    std::uint64_t size, align;
    std::int64_t self, state;
  };
  for (const auto& [machine, size, align, self, state] : {
           Case{EM_X86_64, 0x1c, 8, -0x20, -0x18},   // OCaml 5.3 on Debian 12, dynamic
           Case{EM_X86_64, 0x90, 8, -0x90, -0x88},   //
           Case{EM_X86_64, 0x1c, 64, -0x40, -0x38},  //
           Case{EM_X86_64, 0x1c, 0, -0x1c, -0x14},   // 0 and 1 both mean unaligned
           Case{EM_AARCH64, 0x1c, 8, 0x10, 0x18},    //
           Case{EM_AARCH64, 0x1c, 64, 0x40, 0x48},   //
           Case{EM_X86_64, 0x1c, 24, 0, 0},          // not a power of two
           Case{EM_X86_64, 0x1c, 1ull << 63, 0, 0},  //
           Case{EM_X86_64, UINT64_MAX, 8, 0, 0},     //
           Case{EM_X86_64, 4, 8, -8, 0},             // caml_state lies outside
           Case{EM_RISCV, 0x1c, 8, 0, 0},            // no formula known
       }) {
    ElfShape shape = program(3);
    shape.machine = machine;
    shape.tls_size = size;
    shape.tls_align = align;
    const auto runtime = inspect(shape);
    ASSERT_TRUE(runtime);
    EXPECT_EQ(runtime->domain_self_tls, self) << size << ' ' << align;
    EXPECT_EQ(runtime->caml_state_tls, state) << size << ' ' << align;
  }
}

TEST(Binary, SharedRuntimeHasNoFixedThreadLocals) {
  ElfShape shape = program(3);
  shape.interpreter = false;
  const auto runtime = inspect(shape);
  ASSERT_TRUE(runtime);
  EXPECT_TRUE(runtime->shared_library);
  EXPECT_EQ(runtime->tls_module_word, 0u);
  EXPECT_EQ(runtime->caml_state_tls, 0);
  EXPECT_EQ(runtime->domain_self_tls, 0);
  EXPECT_TRUE(probe(*runtime, RTEV_PROBE_INIT));
}

TEST(Binary, SharedRuntimeTellsWhereItsThreadLocalsAreLookedUp) {
  ElfShape shape = program(3);
  shape.interpreter = false;
  // More of them than are read at once, and last the one for this file: not that of a symbol, which may be another's.
  shape.relocations.assign(5000, {.r_offset = 0x6000, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE), .r_addend = 0});
  shape.relocations.push_back({.r_offset = 0x6008, .r_info = ELF64_R_INFO(7, R_X86_64_DTPMOD64), .r_addend = 0});
  shape.relocations.push_back({.r_offset = 0x6010, .r_info = ELF64_R_INFO(0, R_X86_64_DTPMOD64), .r_addend = 0});
  const auto runtime = inspect(shape);
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->tls_module_word, 0x6010u);
  EXPECT_EQ(runtime->domain_self_tls, 1);
  EXPECT_EQ(runtime->caml_state_tls, 9);
}

TEST(Binary, AProgramMayNeedARuntimeLibrary) {
  const auto needs = [](std::vector<std::string> libraries, bool is_program = true) {
    const auto runtime = inspect(
        {.interpreter = is_program, .symtab = {{.name = "main", .value = text}}, .needed = std::move(libraries)});
    return runtime && runtime->needs_library;
  };
  EXPECT_TRUE(needs({"libm.so.6", "libasmrun_shared.so", "libc.so.6"}));
  EXPECT_TRUE(needs({"/opt/ocaml/lib/libcamlrun_shared.so"}));
  EXPECT_TRUE(needs({"libasmrun-x86_64-pc-linux-gnu-0015.so"}));
  EXPECT_FALSE(needs({"libasmrun_shared.so"}, false)) << "who loads this library has the runtime";
  EXPECT_FALSE(needs({"libasmrun_shared.a", "xlibasmrun_shared.so", "libc.so.6"}));
  EXPECT_FALSE(needs({"libc.so.6"}));
  EXPECT_FALSE(inspect(program(3))->needs_library);
}

TEST(Binary, AProgramThatEmbedsARuntimeNeedsNoLibrary) {
  ElfShape shape = program(3);
  shape.needed = {"libasmrun_shared.so"};
  const auto runtime = inspect(shape);
  ASSERT_TRUE(runtime);
  EXPECT_FALSE(runtime->needs_library);
  EXPECT_EQ(runtime->version, "5.3");
}

/// The dynamic linker of musl gives the end of a page to malloc(3).
TEST(Binary, TheRestOfTheLastPageIsSpareUnlessTheDynamicLinkerUsesIt) {
  const auto spare = [](bool is_static, std::vector<std::string> libraries, std::size_t bytes,
                        bool is_writable = true) {
    ElfShape shape = program(3);
    shape.interpreter = !is_static;
    shape.pie_flag = is_static;
    shape.needed = std::move(libraries);
    shape.rodata = std::string(bytes, '\0');
    shape.is_writable = is_writable;
    const CodeRange found = inspect(shape)->start_sites.spare;
    return std::pair(found.begin, found.end);
  };
  const std::pair<std::uint64_t, std::uint64_t> rest{0x4123, 0x5000};
  EXPECT_EQ(spare(true, {}, 0x123), rest);
  EXPECT_EQ(spare(false, {"libm.so.6", "libc.so.6"}, 0x123), rest);
  for (const char* name : {"libc.so", "libc.musl-x86_64.so.1"}) {
    const auto [begin, end] = spare(false, {name}, 0x123);
    EXPECT_EQ(begin, end) << name;
  }
  const auto full = spare(true, {}, 0x1000), constants = spare(true, {}, 0x123, false);
  EXPECT_EQ(full.first, full.second);
  EXPECT_EQ(constants.first, constants.second);
}

TEST(Binary, FindsTheFlagOfPausedEvents) {
  EXPECT_EQ(inspect(program(3))->paused_flag, 0x7100u);
}

TEST(Binary, StaticProgramsArePrograms) {
  ElfShape pie = program(3);
  pie.interpreter = false;
  pie.pie_flag = true;
  ElfShape fixed = program(3);
  fixed.interpreter = false;
  fixed.type = ET_EXEC;
  for (const ElfShape& shape : {pie, fixed}) {
    const auto runtime = inspect(shape);
    ASSERT_TRUE(runtime);
    EXPECT_FALSE(runtime->shared_library);
    EXPECT_EQ(runtime->caml_state_tls, -0x18);
  }
}

TEST(Binary, LocalNamesMayCarryCompilerSuffixes) {
  constexpr std::uint64_t right = text + 0xb00, wrong = text + 0xc00;
  const auto resolve = [&](const std::vector<std::pair<std::string, std::uint64_t>>& variants) {
    ElfShape shape = program(3);
    std::erase_if(shape.symtab, [](const ElfSymbol& symbol) { return symbol.name == "stw_create_runtime_events"; });
    for (const auto& [suffix, address] : variants)
      shape.symtab.push_back({.name = "stw_create_runtime_events" + suffix, .value = address, .binding = STB_LOCAL});
    return probe(*inspect(shape), RTEV_PROBE_STW_CREATE);
  };
  constexpr std::uint64_t expected = right - ElfShape::text_address + ElfShape::text_offset;
  EXPECT_EQ(resolve({{".constprop.0", right}}), expected);
  EXPECT_EQ(resolve({{".isra.0", right}}), expected);
  EXPECT_EQ(resolve({{".lto_priv.0", right}}), expected);
  EXPECT_EQ(resolve({{".part.0", right}}), expected);
  EXPECT_EQ(resolve({{".part.0", wrong}, {".isra.0", right}}), expected);
  EXPECT_EQ(resolve({{".isra.0", wrong}, {"", right}}), expected);
  EXPECT_EQ(resolve({{"", right}, {"", wrong}}), expected) << "the first of equals";
  EXPECT_EQ(resolve({{".cold", wrong}}), std::nullopt);
  EXPECT_EQ(resolve({{".part.0.cold", wrong}}), std::nullopt);
  EXPECT_EQ(resolve({{".unknown", wrong}}), std::nullopt);
  EXPECT_EQ(resolve({{"_twice", wrong}}), std::nullopt);
}

TEST(Binary, ProbesMustLieInCode) {
  for (const std::uint64_t address :
       {std::uint64_t{0}, text - 1, text + ElfShape::text_size, std::uint64_t{0x4000}, UINT64_MAX}) {
    ElfShape shape = program(3);
    for (ElfSymbol& symbol : shape.symtab)
      if (symbol.name == "stw_create_runtime_events" || symbol.name == "backup_thread_func") symbol.value = address;
    const auto runtime = inspect(shape);
    ASSERT_TRUE(runtime);
    EXPECT_FALSE(probe(*runtime, RTEV_PROBE_STW_CREATE)) << address;
    EXPECT_EQ(runtime->backup_thread.end, 0u) << address;
    EXPECT_TRUE(probe(*runtime, RTEV_PROBE_INIT));
  }
}

TEST(Binary, CodeRangesMustEndInCode) {
  ElfShape shape = program(3);
  for (ElfSymbol& symbol : shape.symtab) {
    if (symbol.name == "backup_thread_func") symbol.size = UINT64_MAX;
    if (symbol.name == "caml_thread_tick") symbol.size = 0;
  }
  const auto runtime = inspect(shape);
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->backup_thread.begin, 0u);
  EXPECT_EQ(runtime->tick_thread.begin, 0u);
}

TEST(Binary, WithoutSymbolsTheTextsDecide) {
  ElfShape bare{.interpreter = false, .rodata = runtime_texts()};
  bare.type = ET_EXEC;
  ElfShape no_sections = bare;
  no_sections.section_headers = false;
  for (const ElfShape& shape : {bare, no_sections}) {
    const auto runtime = inspect(shape);
    ASSERT_TRUE(runtime);
    EXPECT_EQ(runtime->version, "");
    EXPECT_FALSE(runtime->family);
    EXPECT_TRUE(runtime->probes.empty());
    EXPECT_EQ(runtime->id_offset, 0u);
  }
}

TEST(Binary, TextsAreFoundWhereverTheyLie) {
  // Long enough that the search takes several windows, and moved so that texts lie across their borders.
  for (std::size_t lead = 65536 - 80; lead < 65536 + 16; ++lead) {
    ElfShape shape{.rodata = std::string(lead, 'x') + runtime_texts()};
    EXPECT_TRUE(inspect(shape)) << lead;
  }
}

TEST(Binary, ProgramsThatOnlySpeakOfRuntimeEventsAreNoRuntimes) {
  EXPECT_FALSE(inspect(ElfShape{.rodata = "OCAML_RUNTIME_EVENTS_START and OCAML_RUNTIME_EVENTS_DIR"}));
  // The same for one whose symbol table is complete and has no runtime.
  EXPECT_FALSE(inspect(ElfShape{.symtab = {{.name = "main", .value = text}}, .rodata = runtime_texts()}));
  // And for this very program.
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const auto result = inspect_binary(self.get());
  ASSERT_TRUE(result);
  EXPECT_FALSE(*result);
}

TEST(Binary, UndefinedReferencesAreNoRuntime) {
  ElfShape shape{.dynsym = global_symbols(3)};
  for (ElfSymbol& symbol : shape.dynsym) symbol.defined = false;
  EXPECT_FALSE(inspect(shape));
}

TEST(Binary, OCaml4IsNotOurs) {
  const std::vector<ElfSymbol> symbols{{.name = "caml_main", .value = text},
                                       {.name = "caml_eventlog_init", .value = text + 0x20},
                                       {.name = "Caml_state", .value = 0x8000, .type = STT_OBJECT}};
  const std::string texts = "OCAML_EVENTLOG_ENABLED OCAML_EVENTLOG_PREFIX %s.%ld.eventlog";
  EXPECT_FALSE(inspect(ElfShape{.dynsym = symbols, .symtab = symbols, .rodata = texts}));
  EXPECT_FALSE(inspect(ElfShape{.dynsym = symbols, .rodata = texts}));
  EXPECT_FALSE(inspect(ElfShape{.rodata = texts}));
}

TEST(Binary, OtherFilesAreNothing) {
  EXPECT_FALSE(inspect(std::string{}));
  EXPECT_FALSE(inspect(std::string{"#!/usr/bin/ocamlrun\n"}));
  EXPECT_FALSE(
      inspect(std::string{"\x7f"
                          "ELF"}));
  EXPECT_FALSE(inspect(std::string(4096, '\0')));
  const auto refused = [](std::size_t at, char value) {
    std::string bytes = write_elf(program(3));
    bytes[at] = value;
    return !inspect(bytes);
  };
  EXPECT_TRUE(refused(EI_CLASS, ELFCLASS32));
  EXPECT_TRUE(refused(EI_DATA, ELFDATA2MSB));
  EXPECT_TRUE(refused(offsetof(Elf64_Ehdr, e_type), ET_REL));
  EXPECT_TRUE(refused(offsetof(Elf64_Ehdr, e_type), ET_CORE));
}

TEST(Binary, WhatCannotBeReadIsAnError) {
  EXPECT_FALSE(inspect_binary(-1));
  const UniqueFd directory{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  EXPECT_FALSE(inspect_binary(directory.get()));
  const UniqueFd unreadable{::open("/proc/self/exe", O_PATH | O_CLOEXEC)};
  const auto result = inspect_binary(unreadable.get());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EBADF);
}

TEST(Binary, DoesNotMoveTheOffset) {
  const UniqueFd fd = memory_file(write_elf(program(3)));
  ASSERT_EQ(::lseek(fd.get(), 7, SEEK_SET), 7);
  ASSERT_TRUE(inspect_binary(fd.get()));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_CUR), 7);
}

}  // namespace
}  // namespace rtev
