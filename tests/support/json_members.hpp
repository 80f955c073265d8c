// SPDX-License-Identifier: MIT
// A matcher for parts of JSON documents.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rtev::test {

using namespace nlohmann::literals;

/// True if `whole` has all members that `part` has, with their values, also in the objects inside. Arrays have as many
/// elements.
inline bool has_members(const nlohmann::json& whole, const nlohmann::json& part) {
  if (part.is_array() && whole.is_array()) return std::ranges::equal(whole, part, has_members);
  if (!part.is_object() || !whole.is_object()) return whole == part;
  return std::ranges::all_of(part.items(), [&](const auto& member) {
    return whole.contains(member.key()) && has_members(whole[member.key()], member.value());
  });
}

MATCHER_P(HasMembers, part, "has members " + part.dump()) {
  return has_members(arg, part);
}

}  // namespace rtev::test
