// SPDX-License-Identifier: MIT
// Durations, times and sizes in readable units.
#pragma once

#include <cstdint>

#include "base/text_buffer.hpp"

namespace rtev {

/// Three significant digits: "999ns", "1.23µs", "45.6ms", "12.0s"; from 1000 s on whole seconds, "1,234s".
void add_duration(TextBuffer& out, std::uint64_t ns);

/// Seconds from `origin_ns` to `time_ns` with 9 decimals, negative before it, right-aligned in `width` columns.
void add_seconds(TextBuffer& out, std::uint64_t time_ns, std::uint64_t origin_ns, std::size_t width);

/// Local time to the microsecond, "14:03:22.123456", of a time since 1970.
void add_time_of_day(TextBuffer& out, std::uint64_t realtime_ns);

/// Three significant digits, decimal units: "512 B", "34.5 MB".
void add_size(TextBuffer& out, std::uint64_t bytes);

}  // namespace rtev
