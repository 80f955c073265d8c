// SPDX-License-Identifier: MIT
#include "stream/stack_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

StackFrame ocaml(std::string_view function, std::string_view file = "", std::uint32_t line = 0) {
  return {.kind = FrameKind::ocaml, .line = line, .function = function, .file = file};
}
StackFrame c(std::string_view function) {
  return {.kind = FrameKind::c, .function = function, .object = "/bin/server"};
}

std::string text_of(const StackFrame& frame) {
  TextBuffer text;
  add_frame(text, frame);
  return std::string(text.text());
}

class StackText : public testing::Test {
 protected:
  using Add = void (*)(TextBuffer& out, const StackTable& stacks, StackIndex stack);
  /// Outermost frame first.
  static std::string text(Add add, const std::vector<StackFrame>& frames) {
    StackTable stacks;
    StackIndex stack = 0;
    for (const StackFrame& frame : frames) stack = stacks.add_stack(stack, stacks.add_frame(frame));
    TextBuffer out;
    add(out, stacks, stack);
    return std::string(out.text());
  }
  const StackFrame store = ocaml("Upload.store", "src/upload.ml", 42), run = ocaml("Main.run", "main.ml", 7),
                   digest = ocaml("Stdlib.Digest.string", "digest.ml", 44);
};

TEST_F(StackText, SummaryNamesTheCallerAndWhatWasCalled) {
  EXPECT_EQ(text(add_stack_summary, {run, store, digest, c("caml_c_call"), c("caml_md5_string"), c("memcpy")}),
            "Stdlib.Digest.string digest.ml:44 (caml_md5_string), called from Upload.store upload.ml:42");
  EXPECT_EQ(text(add_stack_summary, {run, store, store}), "Upload.store upload.ml:42, called from Main.run main.ml:7");
  EXPECT_EQ(text(add_stack_summary, {c("main"), c("work")}), "work (server)");
}

TEST_F(StackText, SummaryNamesTheProgramsOwnCaller) {
  const StackFrame map = ocaml("Stdlib.List.map", "list.ml", 86);
  EXPECT_EQ(text(add_stack_summary, {run, store, map, digest}),
            "Stdlib.Digest.string digest.ml:44, called from Upload.store upload.ml:42");
  EXPECT_EQ(text(add_stack_summary, {map, digest}),
            "Stdlib.Digest.string digest.ml:44, called from Stdlib.List.map list.ml:86");
}

TEST_F(StackText, ShortSummaryNamesTheProgramsOwnFunction) {
  EXPECT_EQ(text(add_short_stack_summary, {run, store, digest, c("caml_c_call"), c("caml_md5_string")}),
            "Upload.store upload.ml:42 (Stdlib.Digest.string)");
  EXPECT_EQ(text(add_short_stack_summary, {run, c("caml_md5_string")}), "Main.run main.ml:7 (caml_md5_string)");
  EXPECT_EQ(text(add_short_stack_summary, {digest}), "Stdlib.Digest.string digest.ml:44");
  EXPECT_EQ(text(add_short_stack_summary, {c("work")}), "work (server)");
}

TEST_F(StackText, SaysWhereAFrameIs) {
  EXPECT_EQ(text_of({.kind = FrameKind::ocaml, .line = 42, .function = "Web.handle", .file = "src/web.ml"}),
            "Web.handle web.ml:42");
  EXPECT_EQ(text_of({.kind = FrameKind::c, .function = "memcpy", .object = "/usr/lib/libc.so.6"}),
            "memcpy (libc.so.6)");
  EXPECT_EQ(text_of({.kind = FrameKind::c, .address = 0x1234, .object = "/opt/a.so"}), "0x1234 (a.so)");
  EXPECT_EQ(text_of({.kind = FrameKind::kernel, .function = "do_sys_poll"}), "[kernel] do_sys_poll");
  EXPECT_EQ(text_of({}), "[unknown]");
  EXPECT_EQ(text_of({.kind = FrameKind::cut}), "[cut]");
}

TEST_F(StackText, HasNoControlCharacters) {
  for (const std::string& name : test::hostile_strings()) {
    const std::string text =
        text_of({.kind = FrameKind::ocaml, .function = name, .file = name, .object = name, .build_id = name});
    EXPECT_EQ(text.find_first_of("\x1b\n\r\t\b"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace rtev
