// SPDX-License-Identifier: MIT
// Sums of numbers that programs choose: they must not wrap around.
#pragma once

#include <cstdint>

namespace rtev {

/// a + b, or the greatest value if that does not fit.
constexpr std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

}  // namespace rtev
