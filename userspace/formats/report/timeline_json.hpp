// SPDX-License-Identifier: MIT
// The timeline of a pause in the data of an HTML report.
#pragma once

#include "analysis/html_report/pause_timelines.hpp"
#include "base/json_writer.hpp"
#include "stream/stacks.hpp"

namespace rtev {

void add_timeline(JsonWriter& json, const PauseTimeline& timeline, const StackTable& stacks);

}  // namespace rtev
