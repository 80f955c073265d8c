// SPDX-License-Identifier: MIT
// The page of `rtev-bpf report`: one HTML file that loads nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "analysis/page/page_sink.hpp"

namespace rtev {

/// HTML, CSS and JavaScript of the page, with its data compressed inside. Its size is bounded.
std::string report_page(PageReport report);

/// The data, one JSON object. Its members are those that the page needs, and may change with any version.
std::string report_page_json(PageReport& report);

/// The most of its HTML, CSS and JavaScript together.
inline constexpr std::size_t max_report_template_bytes = 60'000;

// The parts of the page without its data.
std::string report_style();
std::string report_script();
/// Between the head and the data.
std::string_view report_body();

}  // namespace rtev
