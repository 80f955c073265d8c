// SPDX-License-Identifier: MIT
// Escapes text for HTML.
#pragma once

#include <string>
#include <string_view>

namespace rtev {

/// Text in an element of HTML. For names of programs add_escaped() comes first.
inline std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace rtev
