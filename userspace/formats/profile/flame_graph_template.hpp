// SPDX-License-Identifier: MIT
// The HTML of an interactive flame graph without its data.
#pragma once

#include <string_view>

namespace rtev {

/// It stands in the template where the title, the style and the data and script of the graph are to be put, in this
/// order.
inline constexpr std::string_view flame_graph_mark = "@@";

/// HTML, CSS and JavaScript in one file. It loads nothing, and shows names as text only.
std::string_view flame_graph_template();

}  // namespace rtev
