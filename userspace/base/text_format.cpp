// SPDX-License-Identifier: MIT
#include "base/text_format.hpp"

namespace rtev {

fmt::appender format_text(const fmt::formatter<std::string_view>& formatter, std::string_view text,
                          fmt::format_context& context) {
  return formatter.format(text, context);
}

}  // namespace rtev
