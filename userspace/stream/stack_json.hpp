// SPDX-License-Identifier: MIT
// Stacks in JSON.
#pragma once

#include <cstddef>

#include "base/json_writer.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// What is unknown has no member.
inline void add_frame_members(JsonWriter& json, const StackFrame& frame) {
  json.plain_member("kind", to_string(frame.kind));
  if (!frame.function.empty()) json.member("function", frame.function);
  if (!frame.file.empty()) json.member("file", frame.file);
  if (frame.line != 0) json.member("line", frame.line);
  if (frame.inlined) json.member("inlined", true);
  if (!frame.object.empty()) json.member("object", frame.object);
  if (frame.address != 0) json.member("address", frame.address);
}

/// An array of frames, innermost first. Of a stack with very long names the outermost frames are left out.
inline void add_stack(JsonWriter& json, const StackTable& stacks, StackIndex stack) {
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  json.array([&] {
    const std::size_t begin = json.text().size();
    stacks.for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) {
      if (json.text().size() - begin < max_bytes) json.object([&] { add_frame_members(json, frame); });
    });
  });
}

}  // namespace rtev
