// SPDX-License-Identifier: MIT
// Lists in sentences.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rtev {

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
