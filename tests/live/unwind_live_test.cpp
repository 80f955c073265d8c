// SPDX-License-Identifier: MIT
// Stacks of living OCaml programs, in everything that they may be doing when they are looked at.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>

#include "live/harness.hpp"
#include "live/stack_capture.hpp"
#include "live/variety.hpp"
#include "unwind/frame_names.hpp"
#include "unwind/unwinder.hpp"
#include "unwind/vdso.hpp"

namespace rtev::test {
namespace {

constexpr std::size_t max_frames = 1000;

std::vector<NamedFrame> names_of(const AddressSpace& space, const Unwound& unwound) {
  std::vector<NamedFrame> names;
  for (const UnwoundFrame& frame : unwound.frames) {
    const CodeMapping& mapping = space.mapping(frame.mapping);
    if (!mapping.tables) continue;
    for (NamedFrame& name : name_frame(*mapping.tables, frame.address, frame.is_return_address))
      names.push_back(std::move(name));
  }
  return names;
}

/// The functions of a stack, innermost first, one a line.
std::string text_of(const std::vector<NamedFrame>& names) {
  std::string text;
  for (const NamedFrame& name : names) text += name.function + "\n";
  return text;
}

struct Kind {
  const char* label;
  std::size_t threads;  ///< at the least
  /// Functions that are on a stack now and then, each called by what comes after it, maybe with others between.
  Strings order;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.label;
}

class UnwindLive : public LiveTest {};

class UnwindKindsLive : public UnwindLive, public testing::WithParamInterface<Kind> {};

bool has_in_order(const std::vector<NamedFrame>& names, const Strings& order) {
  auto from = names.begin();
  return std::ranges::all_of(order, [&](const std::string& function) {
    from = std::find_if(from, names.end(), [&](const NamedFrame& name) { return name.function == function; });
    return from != names.end();
  });
}

TEST_P(UnwindKindsLive, StacksAreComplete) {
  constexpr std::size_t samples = 200;
  Process process(program("stacks", {GetParam().label}), "ready");
  StackCapture capture(process.pid());
  Unwinder unwinder;
  Unwound unwound;
  std::size_t taken = 0, complete = 0, in_order = 0, threads = 0;
  std::string last_incomplete;
  // Threads take turns of 50 ms: what one does may come late.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (taken < samples || (in_order == 0 && std::chrono::steady_clock::now() < deadline)) {
    const auto now = capture.threads();
    threads = std::max(threads, now.size());
    for (const pid_t thread : now) {
      const auto captured = capture.capture(thread);
      unwinder.unwind(captured->stack, capture.space(), max_frames, unwound);
      ASSERT_FALSE(unwound.frames.empty());
      const auto names = names_of(capture.space(), unwound);
      ++taken;
      complete += unwound.end == StackEnd::complete;
      if (unwound.end != StackEnd::complete) last_incomplete = text_of(names);
      in_order += has_in_order(names, GetParam().order);
    }
    ::usleep(300);  // lets the program go on: samples are to differ
  }
  EXPECT_GE(complete * 100, taken * 99) << taken - complete << " of " << taken << " are not:\n" << last_incomplete;
  EXPECT_GT(in_order, 0u) << "no stack with what the program does";
  EXPECT_GE(threads, GetParam().threads);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, UnwindKindsLive,
    testing::Values(
        Kind{"recursion", 1, {"Stacks.descend", "Stacks.descend", "caml_start_program", "main", "_start"}},
        Kind{"digest", 1, {"caml_md5_string", "caml_c_call", "Stacks.digest", "caml_start_program", "main", "_start"}},
        Kind{"minor", 1, {"Stacks", "caml_start_program", "main", "_start"}},
        Kind{"tries", 1, {"Stacks.within_try", "Stacks.tries", "Stacks", "caml_start_program", "main", "_start"}},
        Kind{"major", 1, {"caml_gc_full_major", "caml_c_call", "Stacks", "_start"}},
        Kind{"fibers", 1, {"stacks_checksum", "Stacks.nested", "caml_runstack", "caml_runstack", "Stacks", "_start"}},
        Kind{"callback",
             1,
             {"Stacks.descend", "caml_start_program", "stacks_call_back", "Stacks.from_c", "caml_start_program",
              "stacks_call_back", "Stacks", "caml_start_program", "_start"}},
        Kind{"noalloc", 1, {"stacks_spin", "Stacks", "caml_start_program", "_start"}},
        Kind{"float", 1, {"stacks_spin_float", "Stacks", "caml_start_program", "_start"}},
        Kind{"exceptions", 1, {"caml_stash_backtrace", "caml_raise_exn", "Stacks.fail", "Stacks.exceptions", "_start"}},
        Kind{
            "domains", 2, {"Stacks.descend", "Stacks.domains.(fun)", "Stdlib.Domain.spawn.body", "caml_start_program"}},
        Kind{"systhreads", 3, {"Stacks.descend", "Stacks.for_ever", "caml_start_program"}},
        Kind{"sleep", 1, {"caml_unix_sleep", "caml_c_call", "Stacks", "caml_start_program", "_start"}}),
    by_label);

class UnwindLinesLive : public UnwindLive, public testing::WithParamInterface<const char*> {};

TEST_P(UnwindLinesLive, AreThoseThatOCamlKnows) {
  Command command = program("stacks", {"point"});
  // The program of that version is beside the others of it.
  const fs::path native = Variety{.ocaml = GetParam(), .build = {.kind = "native", .what = ""}}.program();
  command.argv[0] = native.parent_path() / "stacks_native";
  if (!fs::exists(command.argv[0])) {
    const std::string obstacle = std::string("no OCaml ") + GetParam() + " was found when the tests were built";
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }
  covers("stacks", "lines equal `Printexc.get_callstack`", GetParam());
  Process process(command, "ready");
  Strings expected = process.lines_until("still");
  ASSERT_GE(expected.size(), 5u);
  // The innermost one prints the stack and has returned.
  expected.erase(expected.begin());
  StackCapture capture(process.pid());
  const auto captured = capture.capture(process.pid());
  const Unwound unwound = unwind(captured->stack, capture.space(), max_frames);
  const auto names = names_of(capture.space(), unwound);
  EXPECT_EQ(unwound.end, StackEnd::complete) << text_of(names);
  Strings places;
  bool is_behind_gate = false;
  for (const NamedFrame& name : names) {
    if (name.kind != NamedFrame::Kind::ocaml) continue;
    if (is_behind_gate && !name.function.starts_with("Gate."))
      places.push_back(name.function + " " + name.file + " " + std::to_string(name.line));
    is_behind_gate = is_behind_gate || name.function.starts_with("Gate.");
  }
  // OCaml's own stack ends with the fiber.
  ASSERT_GE(places.size(), expected.size()) << text_of(names);
  EXPECT_EQ(Strings(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(expected.size())), expected);
  EXPECT_TRUE(has_in_order(names, {"Stacks.middle", "caml_runstack", "Stacks.outer.(fun)", "stacks_call_back",
                                   "Stacks.outer", "Stacks", "main", "_start"}))
      << text_of(names);
  EXPECT_TRUE(std::ranges::any_of(names, [](const NamedFrame& name) { return name.is_inlined; }));
}

INSTANTIATE_TEST_SUITE_P(Versions, UnwindLinesLive, testing::Values("5.1", "5.3", "5.4"), [](const auto& test) {
  std::string name = test.param;
  std::erase(name, '.');
  return name;
});

}  // namespace
}  // namespace rtev::test
