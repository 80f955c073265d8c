// SPDX-License-Identifier: MIT
// What one of several users may take of what there is for all.
#pragma once

#include <algorithm>
#include <cstddef>

namespace rtev {

/// Whether a user who has `own` of the `taken` places may take one more: he may have half of those that others leave,
/// so that there is always one for somebody else.
constexpr bool has_share(std::size_t own, std::size_t taken, std::size_t places) {
  return own < (places - std::min(places, taken - own)) / 2;
}

}  // namespace rtev
