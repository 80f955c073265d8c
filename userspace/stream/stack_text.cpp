// SPDX-License-Identifier: MIT
#include "stream/stack_text.hpp"

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/program_names.hpp"

namespace rtev {
namespace {

/// A frame of a stack, and those next to it; null where there is none.
struct Place {
  const StackFrame* ocaml = nullptr;   ///< the innermost function that counts
  const StackFrame* inside = nullptr;  ///< the outermost function that it has called
  const StackFrame* caller = nullptr;  ///< the OCaml function that has called it, of the program's own if there is one
};

bool is_own(const StackFrame& frame) {
  return !frame.function.starts_with("Stdlib.");
}

template <typename Counts>
Place find_place(const StackTable& stacks, StackIndex stack, const Counts& counts) {
  Place place;
  stacks.for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) {
    if (place.caller != nullptr && is_own(*place.caller)) return;
    const bool is_ocaml = frame.kind == FrameKind::ocaml;
    if (is_ocaml && place.ocaml != nullptr) {
      if (frame.function == place.ocaml->function || is_glue(frame.function)) return;
      if (place.caller == nullptr || is_own(frame)) place.caller = &frame;
    } else if (is_ocaml && counts(frame)) {
      place.ocaml = &frame;
    } else if (place.ocaml == nullptr && (is_ocaml || frame.kind == FrameKind::c) && !frame.function.empty() &&
               !is_glue(frame.function)) {
      place.inside = &frame;
    }
  });
  return place;
}

void add_place(TextBuffer& out, const Place& place) {
  add_frame(out, *place.ocaml);
  if (place.inside == nullptr) return;
  out.add(" (");
  add_escaped(out, place.inside->function);
  out.add(')');
}

}  // namespace

void add_stack_summary(TextBuffer& out, const StackTable& stacks, StackIndex stack) {
  const Place place = find_place(stacks, stack, [](const StackFrame&) { return true; });
  if (place.ocaml == nullptr) return add_frame(out, stacks.frame(stacks.frame_of(stack)));
  add_place(out, place);
  if (place.caller != nullptr) {
    out.add(", called from ");
    add_frame(out, *place.caller);
  }
}

void add_short_stack_summary(TextBuffer& out, const StackTable& stacks, StackIndex stack) {
  const Place place = find_place(stacks, stack, is_own);
  if (place.ocaml == nullptr) return add_stack_summary(out, stacks, stack);
  add_place(out, place);
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
    add_escaped(out, file_name_of(frame.file));
    if (frame.line != 0) out.add(':', frame.line);
  } else if (!frame.object.empty() && frame.kind == FrameKind::c) {
    out.add(" (");
    add_escaped(out, file_name_of(frame.object));
    out.add(')');
  }
}

}  // namespace rtev
