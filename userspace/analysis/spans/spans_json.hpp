// SPDX-License-Identifier: MIT
// Members that the JSON of spans and of stalls has.
#pragma once

#include "analysis/spans/spans_report.hpp"
#include "base/json_writer.hpp"

namespace rtev {

/// A member "time_ns". `knows_pauses`: GC phases were recorded.
void add_time(JsonWriter& json, const SpanTime& time, bool knows_pauses);

}  // namespace rtev
