// SPDX-License-Identifier: MIT
// Intervals as text for scripts and screen readers, and as JSON.
#pragma once

#include <string>

#include "stream/sink.hpp"
#include "top/columns.hpp"
#include "top/interval.hpp"

namespace rtev::top {

/// Time of day, "14:03:22", or seconds since the start of the run if that is unknown: "12 s".
std::string time_text(const Interval& interval);

/// "12 OCaml processes, 53,120 events/s, 1,234 words lost".
std::string totals_text(const Interval& interval);

/// A line about the interval, a table with all columns, and an empty line. `by_process`: also processes of programs
/// with many have rows of their own.
std::string interval_text(const Interval& interval, const Column* sorted_by, std::size_t width,
                          bool by_process = false);

/// One object in a line. docs/json.md documents it.
std::string interval_json(const Interval& interval, const RunHeader& run, const Column* sorted_by);

}  // namespace rtev::top
