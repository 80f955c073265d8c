// SPDX-License-Identifier: MIT
// The HTML report of `rtev-bpf report`: one file that loads nothing.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/html_report/html_report_sink.hpp"

namespace rtev {

/// HTML, CSS and JavaScript of the report, with its data compressed inside. Its size is bounded.
std::string html_report(HtmlReport report);

/// The data, one JSON object. Its members are those that the report needs, and may change with any version.
std::string html_report_json(HtmlReport& report);

/// "server/4242 and 3 others", "ocamlopt, 152 processes".
std::string report_title(const HtmlReport& report);
/// What is there without scripts: from the begin of the body to the end of the main part, which the script adds to.
std::string report_head(const HtmlReport& report);

}  // namespace rtev
