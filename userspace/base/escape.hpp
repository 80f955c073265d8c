// SPDX-License-Identifier: MIT
// Escapes text of traced programs for terminals and for JSON. Input can be any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text_buffer.hpp"

namespace rtev {

/// A JSON string with its quotes, always valid UTF-8: bytes that are not UTF-8 become U+FFFD, control characters
/// (U+0000-U+001F, U+007F-U+009F) \uXXXX.
void add_json_string(TextBuffer& out, std::string_view text);
/// The same without the quotes: a part of a string.
void add_json_text(TextBuffer& out, std::string_view text);

/// For terminals: control characters, characters that reorder or hide text, and bytes that are not UTF-8 become \xNN
/// for each byte, and a backslash becomes two.
void add_escaped(TextBuffer& out, std::string_view text);
std::string escaped(std::string_view text);

/// For a whole message, parts of which are escaped already: as add_escaped(), but keeps newlines, tabs and backslashes.
std::string printable_message(std::string_view text);

/// Escaped as by add_escaped(), between double quotes; quotes inside are escaped, too.
void add_quoted(TextBuffer& out, std::string_view text);

/// Escaped as by add_escaped(), then cut between characters and padded to `width` columns.
void add_column(TextBuffer& out, std::string_view text, std::size_t width);

/// True if add_escaped() does not change the text.
bool is_printable(std::string_view text);

}  // namespace rtev
