// SPDX-License-Identifier: MIT
// Parts of sentences.
#pragma once

#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

namespace rtev {

/// As the begin of a sentence: with a capital letter.
inline std::string capitalized(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

/// "a", "a and b", "a, b and c".
inline std::string with_and(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " and ";
    text += words[i];
  }
  return text;
}

}  // namespace rtev
