// SPDX-License-Identifier: MIT
// What programs call themselves, made harmless: for terminals and for JSON. Input may be any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text_buffer.hpp"

namespace rtev {

/// A JSON string with its quotes, valid UTF-8 whatever the text is: bytes that are not UTF-8 become U+FFFD, control
/// characters (U+0000-U+001F, U+007F-U+009F) \uXXXX.
void add_json_string(TextBuffer& out, std::string_view text);

/// For terminals: control characters, characters that reorder or hide text, and bytes that are not UTF-8 appear as
/// \xNN, a backslash as two.
void add_escaped(TextBuffer& out, std::string_view text);
std::string escaped(std::string_view text);

/// The same between double quotes; quotes inside are escaped.
void add_quoted(TextBuffer& out, std::string_view text);

/// Escaped and then cut or padded to `width` characters; what is cut is cut between characters.
void add_column(TextBuffer& out, std::string_view text, std::size_t width);

/// True if add_escaped() would leave the text as it is.
bool is_printable(std::string_view text);

}  // namespace rtev
