// SPDX-License-Identifier: MIT
#include "stream/stack_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/escape.hpp"

namespace rtev {
namespace {

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// Of OCaml's runtime: between OCaml code and the C function that it calls.
bool is_glue(const StackFrame& frame) {
  constexpr std::array<std::string_view, 4> glue{"caml_c_call", "caml_c_call_stack_args", "caml_call_gc",
                                                 "caml_alloc_small_dispatch"};
  return std::ranges::find(glue, frame.function) != glue.end();
}

}  // namespace

void add_stack_summary(TextBuffer& out, const StackTable& stacks, StackIndex stack) {
  const StackFrame* inside = nullptr;  // the outermost function that the OCaml function has called
  const StackFrame* ocaml = nullptr;
  const StackFrame* caller = nullptr;
  stacks.for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) {
    if (caller != nullptr) return;
    if (frame.kind == FrameKind::ocaml) {
      if (ocaml == nullptr)
        ocaml = &frame;
      else if (frame.function != ocaml->function)
        caller = &frame;
    } else if (ocaml == nullptr && frame.kind == FrameKind::c && !frame.function.empty() && !is_glue(frame)) {
      inside = &frame;
    }
  });
  if (ocaml == nullptr) return add_frame(out, stacks.frame(stacks.frame_of(stack)));
  add_frame(out, *ocaml);
  if (inside != nullptr) {
    out.add(" (");
    add_escaped(out, inside->function);
    out.add(')');
  }
  if (caller != nullptr) {
    out.add(", called from ");
    add_frame(out, *caller);
  }
}

void add_frame(TextBuffer& out, const StackFrame& frame) {
  switch (frame.kind) {
    case FrameKind::unknown:
    case FrameKind::cut:
    case FrameKind::bytecode:
      out.add('[', to_string(frame.kind), ']');
      return;
    case FrameKind::kernel:
      out.add("[kernel] ");
      break;
    default:
      break;
  }
  if (frame.function.empty()) {
    out.add(std::string_view(fmt::format("{:#x}", frame.address)));
  } else {
    add_escaped(out, frame.function);
  }
  if (!frame.file.empty()) {
    out.add(' ');
    add_escaped(out, file_name(frame.file));
    if (frame.line != 0) out.add(':', frame.line);
  } else if (!frame.object.empty() && frame.kind == FrameKind::c) {
    out.add(" (");
    add_escaped(out, file_name(frame.object));
    out.add(')');
  }
}

}  // namespace rtev
