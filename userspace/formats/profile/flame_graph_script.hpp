// SPDX-License-Identifier: MIT
// The interactive flame graph of HTML files: how it looks, and the JavaScript that draws it.
#pragma once

#include <string_view>

namespace rtev {

/// Classes that begin with "flame-". The HTML file defines the colours --raised, --line and --soft.
std::string_view flame_graph_style();
/// Defines flameGraph(data, box): draws what flame_graph_json() has into an element. It loads nothing, and shows names
/// as text only.
std::string_view flame_graph_script();

}  // namespace rtev
