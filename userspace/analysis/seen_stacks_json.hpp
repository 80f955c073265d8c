// SPDX-License-Identifier: MIT
// Where threads were, in JSON.
#pragma once

#include <vector>

#include "analysis/sample_history.hpp"
#include "base/json_writer.hpp"
#include "stream/stack_json.hpp"

namespace rtev {

/// An array of the stacks that a thread had in a time.
inline void add_seen_stacks(JsonWriter& json, const std::vector<SeenStack>& all, const StackTable& stacks) {
  json.array([&] {
    for (const SeenStack& seen : all) {
      json.object([&] {
        json.plain_member("kind", to_string(seen.kind));
        json.member("samples", seen.samples);
        json.member("of_samples", seen.of_samples);
        json.member("ns", seen.ns);
        add_stack(json.key("stack"), stacks, seen.stack);
      });
    }
  });
}

}  // namespace rtev
