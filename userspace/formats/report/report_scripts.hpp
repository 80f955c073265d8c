// SPDX-License-Identifier: MIT
// The JavaScript of the HTML report, in parts that share one scope: see report_script().
#pragma once

#include <string_view>

namespace rtev {

/// Elements, figures as text, charts with axes, tables.
std::string_view report_basics_script();
/// Everything over time, and MMU.
std::string_view report_charts_script();
/// The timelines of the worst pauses.
std::string_view report_pauses_script();
/// What stands beside these timelines: tables, stacks, the section itself.
std::string_view report_pause_details_script();
/// Tables, flame graphs, method, and what puts the report together.
std::string_view report_sections_script();

}  // namespace rtev
