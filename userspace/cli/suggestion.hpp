// SPDX-License-Identifier: MIT
// "did you mean": words that a mistyped one may stand for.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rtev::cli {

/// How many letters have to be changed, added, removed or swapped with their neighbour to make one word of the other.
std::size_t typing_distance(std::string_view one, std::string_view other);

/// The known word that is most like this one; nothing if none is like it.
std::optional<std::string> similar_word(std::string_view word, std::span<const std::string> known);

}  // namespace rtev::cli
