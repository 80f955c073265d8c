// SPDX-License-Identifier: MIT
// Bytes as text for formats that only hold text: base64 of RFC 4648, section 4, with padding.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rtev {

std::string to_base64(std::string_view bytes);

/// Nothing if the text is not exactly what to_base64() makes of some bytes: blanks, missing padding and bits behind the
/// last byte are refused.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace rtev
