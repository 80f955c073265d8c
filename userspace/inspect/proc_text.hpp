// SPDX-License-Identifier: MIT
// Taking apart the text that /proc is made of.
#pragma once

#include <algorithm>
#include <string_view>

namespace rtev {

/// Cuts the text up to `separator` off the front; the rest of it if there is none.
inline std::string_view take_until(std::string_view& text, char separator) {
  const auto at = text.find(separator);
  const auto taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

/// Cuts the next word, which blanks separate, off the front; empty at the end.
inline std::string_view take_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace rtev
