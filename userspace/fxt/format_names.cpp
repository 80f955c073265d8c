// SPDX-License-Identifier: MIT
#include <array>

#include "rtev/fxt.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::fxt {
namespace {

template <std::size_t count>
std::string_view name_at(const std::array<std::string_view, count>& names, std::size_t index) {
  return index < count ? names[index] : "unknown";
}

}  // namespace

std::string_view to_string(EventType type) {
  static constexpr std::array<std::string_view, 11> names{
      "instant",       "counter",   "duration begin", "duration end", "duration complete", "async begin",
      "async instant", "async end", "flow begin",     "flow step",    "flow end"};
  return name_at(names, static_cast<std::size_t>(type));
}

std::string_view to_string(ArgumentType type) {
  static constexpr std::array<std::string_view, 11> names{"null",   "int32",   "uint32", "int64", "uint64", "double",
                                                          "string", "pointer", "koid",   "bool",  "blob"};
  return name_at(names, static_cast<std::size_t>(type));
}

std::string_view to_string(Status status) {
  static constexpr std::array<std::string_view, 4> names{"written", "wrong arguments", "over a limit of the format",
                                                         "the trace failed"};
  return name_at(names, static_cast<std::size_t>(status));
}

}  // namespace rtev::fxt
