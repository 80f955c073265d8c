// SPDX-License-Identifier: MIT
// A frame of a stack as members of a JSON object.
#pragma once

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

}  // namespace rtev
