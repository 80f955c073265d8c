// SPDX-License-Identifier: MIT
#include "cli/suggestion.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace rtev::cli {

std::size_t typing_distance(std::string_view one, std::string_view other) {
  // Of the beginnings of the words, as long as row and column say: the last three rows of the table.
  std::array<std::vector<std::size_t>, 3> rows;
  rows.fill(std::vector<std::size_t>(other.size() + 1));
  auto& [before, above, row] = rows;
  for (std::size_t j = 0; j < above.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t changed = one[i - 1] != other[j - 1] ? 1 : 0;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + changed});
      const bool is_swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::ranges::rotate(rows, rows.begin() + 1);
  }
  return above.back();
}

std::optional<std::string> similar_word(std::string_view word, std::span<const std::string> known) {
  const auto distance = [word](const std::string& other) { return typing_distance(word, other); };
  const auto closest = std::ranges::min_element(known, {}, distance);
  if (closest == known.end()) return std::nullopt;
  // Of short words most letters have to be right.
  const std::size_t limit = std::clamp<std::size_t>((word.size() + 1) / 3, 1, 3);
  return distance(*closest) <= limit ? std::optional(*closest) : std::nullopt;
}

}  // namespace rtev::cli
