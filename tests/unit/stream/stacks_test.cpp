// SPDX-License-Identifier: MIT
#include "stream/stacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rtev {
namespace {

using testing::ElementsAre;

StackIndex stack_of(StackTable& stacks, const std::vector<StackFrame>& outermost_first) {
  StackIndex stack = 0;
  for (const StackFrame& frame : outermost_first) stack = stacks.add_stack(stack, stacks.add_frame(frame));
  return stack;
}

StackFrame ocaml_frame(std::string_view function) {
  return {.kind = FrameKind::ocaml, .function = function};
}
StackFrame c_frame(std::string_view function) {
  return {.kind = FrameKind::c, .function = function};
}

std::vector<std::string> functions_of(const StackTable& stacks, StackIndex stack) {
  std::vector<std::string> functions;
  stacks.for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) { functions.emplace_back(frame.function); });
  return functions;
}

TEST(Stacks, AreKeptOnce) {
  StackTable stacks;
  const StackIndex one = stack_of(stacks, {c_frame("main"), ocaml_frame("A.f"), ocaml_frame("A.g")});
  EXPECT_EQ(stack_of(stacks, {c_frame("main"), ocaml_frame("A.f"), ocaml_frame("A.g")}), one);
  const StackIndex other = stack_of(stacks, {c_frame("main"), ocaml_frame("A.f"), ocaml_frame("A.h")});
  EXPECT_NE(other, one);
  EXPECT_EQ(stacks.caller_of(other), stacks.caller_of(one));
  EXPECT_THAT(functions_of(stacks, one), ElementsAre("A.g", "A.f", "main"));
  EXPECT_THAT(functions_of(stacks, 0), ElementsAre());
}

TEST(Stacks, CopyTheTextsOfFrames) {
  StackTable stacks;
  FrameIndex frame = 0;
  {
    const std::string function(100, 'f'), file = "some/long/path/of/a/source/file.ml";
    frame = stacks.add_frame({.kind = FrameKind::ocaml, .line = 7, .function = function, .file = file});
  }
  StackTable moved = std::move(stacks);
  EXPECT_EQ(moved.frame(frame).function, std::string(100, 'f'));
  EXPECT_EQ(moved.frame(frame).file, "some/long/path/of/a/source/file.ml");
}

TEST(Stacks, AreUnknownWhileTheyAreReserved) {
  StackTable stacks;
  const StackIndex reserved = stacks.reserve();
  EXPECT_TRUE(stacks.is_reserved(reserved));
  EXPECT_FALSE(stacks.is_complete(reserved));
  const StackIndex known = stack_of(stacks, {c_frame("main"), ocaml_frame("A.f")});
  stacks.set_reserved(reserved, known);
  EXPECT_FALSE(stacks.is_reserved(reserved));
  EXPECT_THAT(functions_of(stacks, reserved), ElementsAre("A.f", "main"));
  EXPECT_TRUE(stacks.is_complete(reserved));
  stacks.set_reserved(reserved, 0);  // it is not reserved any more
  EXPECT_TRUE(stacks.is_complete(reserved));
}

TEST(Stacks, AreCompleteIfTheirOutermostFrameIsKnown) {
  StackTable stacks;
  EXPECT_FALSE(stacks.is_complete(0));
  EXPECT_FALSE(stacks.is_complete(StackTable::unknown()));
  EXPECT_TRUE(stacks.is_complete(stack_of(stacks, {c_frame("_start"), ocaml_frame("A.f")})));
  EXPECT_FALSE(stacks.is_complete(stack_of(stacks, {{.kind = FrameKind::cut}, ocaml_frame("A.f")})));
  EXPECT_FALSE(stacks.is_complete(stack_of(stacks, {{}, ocaml_frame("A.f")})));
}

TEST(Stacks, NameTheInnermostFrameOfOCaml) {
  StackTable stacks;
  const StackIndex stack = stack_of(stacks, {c_frame("main"), ocaml_frame("Outer.f"), ocaml_frame("Inner.g"),
                                             c_frame("caml_md5"), c_frame("memcpy")});
  EXPECT_EQ(stacks.innermost_ocaml(stack).function, "Inner.g");
  EXPECT_EQ(stacks.innermost_ocaml(stack_of(stacks, {c_frame("main"), c_frame("work")})).function, "work");
  EXPECT_EQ(stacks.innermost_ocaml(0).kind, FrameKind::unknown);
}

TEST(Stacks, BoundTheirTexts) {
  StackTable stacks;
  const std::string longest(StackTable::max_text - 16, 'x');
  constexpr std::size_t room = StackTable::max_text_bytes / StackTable::max_text;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < 2 * room; ++i) {
    const std::string function = longest + std::to_string(i);
    if (stacks.add_frame(ocaml_frame(function)) != 0) ++kept;
  }
  EXPECT_GE(kept, room);
  EXPECT_LE(kept, room + room / 16);
}

TEST(Stacks, CutLongTexts) {
  StackTable stacks;
  const std::string name(StackTable::max_text + 1, 'x');
  EXPECT_EQ(stacks.frame(stacks.add_frame(ocaml_frame(name))).function.size(), StackTable::max_text);
}

TEST(Stacks, OfADamagedRecordingEnd) {
  StackTable stacks;
  // Each calls the other.
  EXPECT_TRUE(stacks.restore_stack(5, 6, 0));
  EXPECT_TRUE(stacks.restore_stack(6, 5, 9));
  EXPECT_EQ(functions_of(stacks, 5).size(), StackTable::max_depth);
  EXPECT_FALSE(stacks.is_complete(5));
  EXPECT_FALSE(stacks.restore_stack(0, 1, 1));
  EXPECT_FALSE(stacks.restore_stack(StackTable::max_stacks, 1, 1));
  EXPECT_FALSE(stacks.restore_frame(0, ocaml_frame("f")));
  EXPECT_FALSE(stacks.restore_frame(StackTable::max_frames, ocaml_frame("f")));
  EXPECT_THAT(functions_of(stacks, 4'000'000'000), ElementsAre());
}

}  // namespace
}  // namespace rtev
