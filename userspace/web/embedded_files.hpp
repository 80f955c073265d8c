// SPDX-License-Identifier: MIT
// Style, scripts and HTML of the HTML files that the tool writes: files of this folder, which embed.cmake puts into the
// program.
#pragma once

#include <string_view>

namespace rtev::web {

struct Part {
  std::string_view text;
  std::string_view sha256;  ///< of the text, 32 bytes: a Content-Security-Policy names what it allows by this hash
};

// Of the HTML report.
extern const Part report_style, report_script;

/// Classes that begin with "flame-". The page defines the colours --raised, --line and --soft.
extern const Part flame_graph_style;
/// Defines flameGraph(data, box): draws what flame_graph_json() has into an element. It loads nothing, and shows names
/// as text only.
extern const Part flame_graph_script;
/// The HTML of a flame graph. `placeholder` is in it where these belong, in this order: the title, the style, the
/// heading, the sentence, the run, what is there without scripts, the data and the script.
extern const Part flame_graph_page;
inline constexpr std::string_view placeholder = "@@";

}  // namespace rtev::web
