// SPDX-License-Identifier: MIT
// Finds what must not reach a terminal.
#pragma once

#include <string>
#include <string_view>

namespace rtev::test {

/// JSON for programs may hold what only deceives people.
enum class Deception : bool { refused, allowed };

/// What a text has that controls a terminal or deceives its reader, with its place: control characters other than
/// newline and tab, also as UTF-8 (U+0080 to U+009F), bidirectional controls, bytes that are not UTF-8. Empty if there
/// is none. Shares no code with base/escape.cpp.
std::string terminal_danger(std::string_view text, Deception deception = Deception::refused);

}  // namespace rtev::test
