// SPDX-License-Identifier: MIT
// Stacks made by hand, and this process's own.
#include "unwind/unwinder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <ucontext.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "unit/unwind/frametable_writer.hpp"
#include "unwind/frame_names.hpp"
#include "unwind/vdso.hpp"

namespace rtev {
namespace {

using namespace test;

constexpr std::uint64_t load_address = 0x7f0000000000;
/// Of code in memory.
constexpr std::uint64_t in_memory(std::uint64_t address) {
  return load_address + address;
}

/// A process with one object.
AddressSpace space_of(const ObjectShape& shape) {
  auto tables = std::make_shared<const ObjectTables>(tables_of(shape));
  return AddressSpace({{.begin = in_memory(code),
                        .end = in_memory(code + ObjectShape::text_size),
                        .file_offset = ObjectShape::text_offset,
                        .tables = std::move(tables),
                        .path = "/bin/program"}});
}

/// A thread, of which tests set registers and memory.
struct Thread {
  StackCopy stack{};
  std::vector<MemoryCopy> copies;
  std::vector<std::shared_ptr<std::vector<std::uint64_t>>> memory;

  explicit Thread(std::uint64_t address, std::uint64_t rsp = 0) {
    stack.registers[16] = in_memory(address);
    stack.registers[7] = rsp;
  }
  Thread& at(std::uint64_t address, std::vector<std::uint64_t> words) {
    memory.push_back(std::make_shared<std::vector<std::uint64_t>>(std::move(words)));
    copies.push_back({address, std::as_bytes(std::span{*memory.back()})});
    return *this;
  }
  StackCopy copy() const {
    StackCopy result = stack;
    result.copies = copies;
    return result;
  }
};

/// "2010 2105r | complete": the address of each frame, r if it is returned to, g behind a gap, and the end.
std::string walk(const Thread& thread, const AddressSpace& space, std::size_t max_frames = 100) {
  const Unwound unwound = unwind(thread.copy(), space, max_frames);
  std::string text;
  for (const UnwoundFrame& frame : unwound.frames) {
    char number[32];
    std::snprintf(number, sizeof number, "%x", frame.address);
    text += std::string(number) + (frame.is_return_address ? "r" : "") + (frame.follows_gap ? "g" : "") + " ";
  }
  constexpr const char* ends[] = {"complete", "truncated", "not copied", "unknown", "too deep"};
  return text + "| " + ends[static_cast<std::size_t>(unwound.end)];
}

constexpr unsigned rbx = 3, rsp = 7, r10 = 10, r13 = 13;
constexpr std::uint64_t stack_top = 0x7ffe0000;

/// f pushes rbx and 8 bytes; g has a frame of 32 bytes; h has none; main calls them and is called by _start.
ObjectShape c_program() {
  EhFrameWriter writer;
  const auto common = writer.common(def_cfa(rsp, 8) + saved(16, 1));
  writer.function(common, code, 0x40,
                  advance(1) + cfa_offset(16) + saved(rbx, 2) + advance(4) + cfa_offset(24) + advance(30) +
                      cfa_offset(16) + advance(1) + cfa_offset(8));
  writer.function(common, code + 0x40, 0x40, advance(4) + cfa_offset(40));
  writer.function(common, code + 0x80, 0x40, "");
  writer.function(common, code + 0xc0, 0x40, advance(1) + def_cfa(rbx, 16) + saved(rbx, 2));
  writer.function(writer.common(def_cfa(rsp, 8) + instructions({0x07, 16})), code + 0x100, 0x20, "");
  // A signal's return: all that was interrupted lies behind rsp.
  const std::string ip = instructions({0x77, 40}), sp = instructions({0x77, 32});
  writer.function(
      writer.common("", "zRS"), code + 0x120, 0x10,
      cfa_expression(sp + instructions({0x06})) + instructions({0x10, 16, 2}) + ip + instructions({0x10, 7, 2}) + sp);
  return {.eh_frame = writer.bytes()};
}

TEST(Unwinder, ReachesTheBeginning) {
  const AddressSpace space = space_of(c_program());
  const Thread thread = Thread(code + 0x10, stack_top)
                            .at(stack_top, {1, 2, in_memory(code + 0x50), 3, 4, 5, 6, in_memory(code + 0x110), 7});
  EXPECT_EQ(walk(thread, space), "2010 2050r 2110r | complete");
  EXPECT_EQ(walk(thread, space, 2), "2010 2050r | too deep");
  EXPECT_EQ(walk(thread, space, 0), "| unknown");
}

TEST(Unwinder, TheEntryOfAProgramNeedsNoTables) {
  ObjectShape shape = c_program();
  // As of the dynamic linker: the code in front of the last function has none.
  EhFrameWriter writer;
  const auto common = writer.common(def_cfa(rsp, 8) + saved(16, 1));
  writer.function(common, code, 0x40, "");
  writer.function(common, code + 0x100, 0x40, "");
  shape.eh_frame = writer.bytes();
  const Thread thread = Thread(code + 0x10, stack_top).at(stack_top, {in_memory(code + 0x90), 1});
  EXPECT_EQ(walk(thread, space_of(shape)), "2010 2090r | unknown");
  shape.entry = code + 0x80;
  EXPECT_EQ(walk(thread, space_of(shape)), "2010 2090r | complete");
  shape.entry = code + 0x90;
  EXPECT_EQ(walk(thread, space_of(shape)), "2010 2090r | unknown") << "the call is in front of the entry";
  for (const std::uint64_t entry : {std::uint64_t{code}, std::uint64_t{code + 0x150}, UINT64_MAX, std::uint64_t{1}}) {
    shape.entry = entry;
    EXPECT_EQ(walk(thread, space_of(shape)), "2010 2090r | unknown") << entry;
  }
}

TEST(Unwinder, FollowsRegistersThatWereSaved) {
  // The caller of f is found by rbx, which f has saved.
  const Thread thread =
      Thread(code + 0x10, stack_top)
          .at(stack_top, {1, stack_top + 64, in_memory(code + 0xd0), 0, 0, 0, 0, 0, 9, in_memory(code + 0x110), 0});
  const AddressSpace space = space_of(c_program());
  EXPECT_EQ(walk(thread, space), "2010 20d0r 2110r | complete");
}

TEST(Unwinder, EpiloguesHaveRestoredWhatLiesBelow) {
  // rbx was popped: what lies below rsp is another's.
  Thread thread =
      Thread(code + 36, stack_top)
          .at(stack_top - 16, {0xbad, 0xbad, in_memory(code + 0xd0), 0, 0, 0, 0, 0, in_memory(code + 0x110)});
  thread.stack.registers[rbx] = stack_top + 40;
  EXPECT_EQ(walk(thread, space_of(c_program())), "2024 20d0r 2110r | complete");
}

TEST(Unwinder, LeavesSignalHandlersAtTheInstruction) {
  // The interrupted instruction is the first of a function: before it there is another.
  const Thread thread =
      Thread(code + 0x90, stack_top)
          .at(stack_top, {in_memory(code + 0x121), 0, 0, 0, 0, stack_top + 64, in_memory(code + 0x80), 0})
          .at(stack_top + 64, {in_memory(code + 0x110), 0});
  EXPECT_EQ(walk(thread, space_of(c_program())), "2090 2121r 2080 2110r | complete");
}

TEST(Unwinder, StopsWhereItCannotBeSure) {
  const AddressSpace space = space_of(c_program());
  EXPECT_EQ(walk(Thread(code + 0x90, stack_top).at(stack_top + 8, {1}), space), "2090 | not copied");
  EXPECT_EQ(walk(Thread(code + 0x90, stack_top), space), "2090 | not copied");
  EXPECT_EQ(walk(Thread(code + 0x90, stack_top).at(stack_top, {0}), space), "2090 | unknown");
  EXPECT_EQ(walk(Thread(code + 0x90, stack_top).at(stack_top, {0x1234}), space), "2090 | unknown");
  EXPECT_EQ(walk(Thread(code + 0x200, stack_top).at(stack_top, {in_memory(code + 0x50)}), space), "2200 | unknown");
  EXPECT_EQ(walk(Thread(0, stack_top), space), "0 | unknown") << "no code at all";
  EXPECT_EQ(walk(Thread(code, stack_top), AddressSpace()), "0 | unknown");
  // An object whose tables are not there.
  EXPECT_EQ(walk(Thread(code, stack_top), AddressSpace({{.begin = in_memory(code), .end = in_memory(code + 9)}})),
            "0 | unknown");
}

TEST(Unwinder, TellsLongStacksFromThoseThatGoOnElsewhere) {
  const AddressSpace space = space_of(c_program());
  // Of the frame of g only the first words were copied.
  EXPECT_EQ(walk(Thread(code + 0x10, stack_top).at(stack_top, {1, 2, in_memory(code + 0x50), 3, 4}), space),
            "2010 2050r | truncated");
  EXPECT_EQ(walk(Thread(code + 0x10, stack_top).at(stack_top, {1, 2, in_memory(code + 0x50)}), space),
            "2010 2050r | truncated");
  // The caller of f is found by rbx: it may be on another stack.
  const std::vector<std::uint64_t> words{1, stack_top + 0x10000, in_memory(code + 0xd0), 5};
  EXPECT_EQ(walk(Thread(code + 0x10, stack_top).at(stack_top, words), space), "2010 20d0r | not copied");
}

TEST(Unwinder, LoopsEnd) {
  // Each frame is found by rbx, which points at the same frame for ever.
  Thread thread = Thread(code + 0xd0, stack_top).at(stack_top, {stack_top, in_memory(code + 0xd0), 0, 0});
  thread.stack.registers[rbx] = stack_top;
  const Unwound unwound = unwind(thread.copy(), space_of(c_program()), 100'000);
  EXPECT_EQ(unwound.end, StackEnd::unknown);
  EXPECT_LT(unwound.frames.size(), 10u);
}

/// An OCaml function of frames of 32 bytes, another that starts a fiber, caml_runstack, caml_start_program, a C main.
ObjectShape ocaml_program() {
  EhFrameWriter writer;
  const auto common = writer.common(def_cfa(rsp, 8) + saved(16, 1));
  writer.function(common, code, 0x40, cfa_offset(32));
  const auto special = writer.common(def_cfa(rsp, 8) + saved(16, 1), "zRS");
  // caml_runstack: the stack of the parent is in what [rsp + 16] points at.
  writer.function(special, code + 0x80, 0x20,
                  advance(8) + cfa_expression(instructions({0x77, 16, 0x06, 0x23, 24, 0x06, 0x06, 0x23, 8})));
  // caml_start_program: 32 bytes of OCaml's, then what it called from C has.
  writer.function(special, code + 0xa0, 0x20, cfa_expression(instructions({0x77, 16, 0x06, 0x23, 16})));
  writer.function(common, code + 0x100, 0x80, cfa_offset(16));               // caml_raise_exn
  writer.function(common, code + 0x180, 0x40, advance(4) + cfa_offset(32));  // caml_stash_backtrace
  writer.function(writer.common(def_cfa(rsp, 8) + instructions({0x07, 16})), code + 0x200, 0x20, "");
  FrametableWriter frames;
  frames.unit({{.return_address = code + 0x10, .frame_bytes = 32, .places = {{"Main.f", "main.ml", 1}}},
               {.return_address = code + 0x20, .frame_bytes = 32}});
  frames.runtime(code + 0xb0, code + 0x88);
  return {.eh_frame = writer.bytes(),
          .data = frames.bytes(),
          .symbols = {{.name = "caml_frametable", .value = FrametableWriter::address, .type = STT_OBJECT},
                      {.name = "caml_raise_exn", .value = code + 0x100, .size = 0x40},
                      {.name = "caml_raise_exception", .value = code + 0x180, .size = 8}}};
}

constexpr std::uint64_t fiber = 0x500000, parent = 0x600000, c_stack = 0x7ffe1000;

TEST(Unwinder, GoesFromFiberToParentToC) {
  Thread thread(code + 0x18, fiber);
  // A frame of f, one of f, then the end of the fiber: caml_runstack's return address is not behind a call.
  thread.at(fiber,
            {0, 0, 0, in_memory(code + 0x10), 0, 0, 0, in_memory(code + 0x88), 0, 0, fiber + 96, 0, 0, 0, 0, parent});
  // Of the parent's description the first word is its stack pointer.
  thread.at(parent, {parent + 64});
  thread.at(parent + 64, {in_memory(code + 0x20), 0, 0, 0, in_memory(code + 0xb0), 0, 0, c_stack, 0});
  thread.at(c_stack, {0, in_memory(code + 0x210)});
  // caml_runstack: CFA - 8 is the return address of the parent.
  thread.memory[0]->at(10) = fiber + 96;
  EXPECT_EQ(walk(thread, space_of(ocaml_program())), "2018 2010r 2088r 2020r 20b0r 2210r | complete");
}

TEST(Unwinder, OCamlFramesAreAsLargeAsTheFrametableSays) {
  // The unwinding tables of this function say 32 bytes. In the body of a `try` there are 16 more.
  FrametableWriter frames;
  frames.unit({{.return_address = code + 0x10, .frame_bytes = 48}});
  ObjectShape shape = ocaml_program();
  shape.data = frames.bytes();
  const Thread thread =
      Thread(code + 0x18, fiber)
          .at(fiber, {0, 0, 0, in_memory(code + 0x10), 0, 0, 0, in_memory(code + 0x20), 0, in_memory(code + 0x210), 0});
  EXPECT_EQ(walk(thread, space_of(shape)), "2018 2010r 2210r | complete");
}

TEST(Unwinder, FollowsRaiseToTheOtherStack) {
  const AddressSpace space = space_of(ocaml_program());
  const auto ocaml = [](Thread& thread) {
    thread.at(parent, {in_memory(code + 0x20), 0, 0, 0, in_memory(code + 0xb0), 0, 0, c_stack, 0});
    thread.at(c_stack, {0, in_memory(code + 0x210)});
  };
  // In caml_stash_backtrace, called by caml_raise_exn: what is behind it on the C stack is no caller.
  Thread stash(code + 0x190, c_stack - 64);
  stash.at(c_stack - 64, {1, 2, 3, in_memory(code + 0x130), 0xbad});
  stash.stack.registers[r13] = parent;
  ocaml(stash);
  EXPECT_EQ(walk(stash, space), "2190 2130r 2020r 20b0r 2210r | complete");
  // In caml_raise_exn itself, on the C stack already.
  Thread raise(code + 0x120, c_stack - 64);
  raise.at(c_stack - 64, {0xbad, 0xbad, 0xbad});
  raise.stack.registers[r10] = parent;
  ocaml(raise);
  EXPECT_EQ(walk(raise, space), "2120 2020r 20b0r 2210r | complete");
  // No register has it, but caml_stash_backtrace has come to a frame.
  Thread lost(code + 0x190, c_stack - 64);
  lost.at(c_stack - 64, {1, parent + 8, 3, in_memory(code + 0x130), 0xbad});
  ocaml(lost);
  EXPECT_EQ(walk(lost, space), "2190 2130r 2020rg 20b0r 2210r | complete");
  lost.memory[0]->at(1) = 0;
  EXPECT_EQ(walk(lost, space), "2190 2130r | unknown");
}

TEST(Unwinder, AStackOfOCamlThatWasNotCopiedIsNotCut) {
  // As perf_event_open(2) copies it: the C stack, on which code of the runtime keeps the stack pointer of OCaml.
  for (const std::uint64_t other : {fiber, c_stack + 0x10000})
    EXPECT_EQ(walk(Thread(code + 0xb0, c_stack).at(c_stack, {0, 0, other, 0}), space_of(ocaml_program())),
              "20b0 | not copied");
}

TEST(Unwinder, ResumesBehindAGapInAnOCamlStack) {
  const AddressSpace space = space_of(ocaml_program());
  Thread thread(code + 0x18, fiber);
  thread.at(fiber, {0, 0, 0, in_memory(code + 0x10), 0, 0, 0});
  // The oldest part: rests of a frame, one of them like a return address; four frames; the end of the stack.
  std::vector<std::uint64_t> oldest{5, in_memory(code + 0x10), 6, in_memory(code + 0x20)};
  for (int i = 0; i < 4; ++i) oldest.insert(oldest.end(), {0, 0, 0, in_memory(code + 0x10)});
  oldest.insert(oldest.end(), {0, 0, 0, in_memory(code + 0xb0), 0, 0, c_stack, 0, 0, 0, 0, 0});
  thread.at(fiber + 0x10000, oldest);
  thread.at(c_stack, {0, in_memory(code + 0x210)});
  EXPECT_EQ(walk(thread, space), "2018 2010r 2020rg 2010r 2010r 2010r 2010r 20b0r 2210r | complete");
  // Without the end of the stack no frame is certain.
  oldest.resize(12);
  Thread cut(code + 0x18, fiber);
  cut.at(fiber, {0, 0, 0, in_memory(code + 0x10), 0, 0, 0}).at(fiber + 0x10000, oldest);
  EXPECT_EQ(walk(cut, space), "2018 2010r | truncated");
}

TEST(Unwinder, UnwindsArm64) {
  constexpr unsigned x29 = 29, x30 = 30, sp = 31, pc = 32;
  EhFrameWriter writer;
  const auto common = writer.common(def_cfa(sp, 0), "zR", x30);
  writer.function(common, code, 0x40, "");
  writer.function(common, code + 0x40, 0x40,
                  advance(4) + instructions({0x2d}) + advance(4) + cfa_offset(32) + saved(x29, 4) + saved(x30, 3));
  writer.function(common, code + 0x80, 0x40, def_cfa(x29, 16) + saved(x29, 2) + saved(x30, 1));
  writer.function(writer.common(def_cfa(sp, 0) + instructions({0x07, x30}), "zR", x30), code + 0xc0, 0x10, "");
  const AddressSpace space = space_of({.machine = EM_AARCH64, .eh_frame = writer.bytes()});
  Thread thread(0);
  thread.stack.registers = {};
  thread.stack.registers[pc] = in_memory(code + 0x10);
  thread.stack.registers[sp] = stack_top;
  thread.stack.registers[x30] = in_memory(code + 0x50);
  // The return address in memory is signed.
  thread.at(stack_top, {stack_top + 48, in_memory(code + 0x90) | std::uint64_t{0x2a} << 49, 0, 0, 0, 0, 0,
                        in_memory(code + 0xc8), 0});
  EXPECT_EQ(walk(thread, space), "2010 2050r 2090r 20c8r | complete");
  // Where none is saved, only the innermost frame has one in x30.
  thread.stack.registers[x30] = in_memory(code + 0x10);
  EXPECT_EQ(walk(thread, space), "2010 2010r | unknown");
}

TEST(Unwinder, SurvivesAnyStack) {
  const AddressSpace space = space_of(ocaml_program());
  Unwinder unwinder;
  Unwound unwound;
  std::mt19937_64 random{13};
  const auto word = [&]() -> std::uint64_t {
    switch (random() % 4) {
      case 0:
        return in_memory(code + random() % 0x240);
      case 1:
        return stack_top + random() % 64 * 8;
      case 2:
        return UINT64_MAX - random() % 64;
      default:
        return random();
    }
  };
  for (int round = 0; round < 20'000; ++round) {
    Thread thread(code + random() % 0x240, stack_top);
    for (const unsigned number : {rbx, r10, r13}) thread.stack.registers[number] = word();
    std::vector<std::uint64_t> words(64);
    for (auto& each : words) each = word();
    thread.at(random() % 8 != 0 ? stack_top : UINT64_MAX - 100, std::move(words));
    unwinder.unwind(thread.copy(), space, 200, unwound);
    ASSERT_LE(unwound.frames.size(), 200u);
  }
}

AddressSpace own_space() {
  std::vector<CodeMapping> mappings;
  std::map<std::string, std::shared_ptr<const ObjectTables>> known;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    CodeMapping mapping;
    char rights[5] = {};
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.begin, &mapping.end,
                    rights, &mapping.file_offset, &path) < 4 ||
        rights[2] != 'x')
      continue;
    mapping.path = line.substr(static_cast<std::size_t>(path));
    if (!mapping.path.starts_with('/')) continue;
    auto& tables = known[mapping.path];
    if (!tables) {
      const UniqueFd fd{::open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC)};
      if (auto bytes = build_object_tables(fd.get()))
        tables = std::make_shared<const ObjectTables>(ObjectTables::from_bytes(std::move(*bytes)).value());
    }
    mapping.tables = tables;
    mappings.push_back(std::move(mapping));
  }
  return AddressSpace(std::move(mappings));
}

// Not static, so that they keep their names.
[[gnu::noinline]] std::vector<std::string> names_of_own_stack(const AddressSpace& space) {
  ucontext_t context;
  ::getcontext(&context);
  StackCopy stack;
#if defined(__x86_64__)
  constexpr int numbers[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                             REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (std::size_t i = 0; i < std::size(numbers); ++i)
    stack.registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[numbers[i]]);
  const std::uint64_t sp = stack.registers[rsp];
#else
  for (std::size_t i = 0; i < 31; ++i) stack.registers[i] = context.uc_mcontext.regs[i];
  stack.registers[31] = context.uc_mcontext.sp;
  stack.registers[32] = context.uc_mcontext.pc;
  const std::uint64_t sp = stack.registers[31];
#endif
  // The stack itself serves as the copy: up to the environment, which is above all frames.
  const auto end = reinterpret_cast<std::uint64_t>(environ[0]) & ~std::uint64_t{7};
  const MemoryCopy copy{sp, {reinterpret_cast<const std::byte*>(sp), end - sp}};  // NOLINT(performance-no-int-to-ptr)
  stack.copies = {&copy, 1};
  const Unwound unwound = unwind(stack, space, 1000);
  std::vector<std::string> names;
  for (const UnwoundFrame& frame : unwound.frames) {
    const auto& tables = space.mapping(frame.mapping).tables;
    names.push_back(tables ? name_frame(*tables, frame.address, frame.is_return_address).front().function : "");
  }
  names.push_back(unwound.end == StackEnd::complete ? "complete" : "cut");
  return names;
}

[[gnu::noinline]] std::vector<std::string> call_names_of_own_stack(const AddressSpace& space) {
  auto names = names_of_own_stack(space);
  names.push_back("called");
  return names;
}

TEST(Unwinder, UnwindsItsOwnProcess) {
  const auto names = call_names_of_own_stack(own_space());
  ASSERT_GE(names.size(), 5u);
  EXPECT_EQ(names.back(), "called");
  EXPECT_EQ(names[names.size() - 2], "complete");
  EXPECT_EQ(names[names.size() - 3], "_start");
  EXPECT_NE(names[0].find("names_of_own_stack"), std::string::npos) << names[0];
  EXPECT_NE(names[1].find("call_names_of_own_stack"), std::string::npos) << names[1];
}

}  // namespace
}  // namespace rtev
