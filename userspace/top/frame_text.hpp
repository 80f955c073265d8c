// SPDX-License-Identifier: MIT
// Frames as text for scripts and screen readers, and as JSON.
#pragma once

#include <string>

#include "stream/sink.hpp"
#include "top/columns.hpp"
#include "top/frame.hpp"

namespace rtev::top {

/// Time of day, "14:03:22", or seconds since the start of the run if that is unknown: "12 s".
std::string time_text(const Frame& frame);

/// "12 OCaml processes, 53,120 events/s, 1,234 words lost".
std::string totals_text(const Frame& frame);

/// A line about the interval, a table with all columns, and an empty line.
std::string frame_text(const Frame& frame, const Column* sorted_by, std::size_t width);

/// One object in a line. docs/json.md documents it.
std::string frame_json(const Frame& frame, const RunHeader& run, const Column* sorted_by);

}  // namespace rtev::top
