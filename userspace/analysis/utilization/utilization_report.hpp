// SPDX-License-Identifier: MIT
// Minimum mutator utilization in reports: the same line, table and JSON in each.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/utilization/mutator_utilization.hpp"
#include "base/json_writer.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

/// A line with the shares of some lengths; nothing if none is known.
void add_utilization_line(TextBuffer& out, const std::vector<WindowUtilization>& windows);

/// A table of all lengths that are known, after an empty line. The run began at `start_ns`.
void add_utilization_table(TextBuffer& out, const std::vector<WindowUtilization>& windows, std::uint64_t start_ns,
                           std::uint64_t start_realtime_ns);

/// The member "mmu": docs/json.md describes it. `is_unknown`: null.
void add_utilization(JsonWriter& json, const std::vector<WindowUtilization>& windows, bool is_unknown);

}  // namespace rtev
