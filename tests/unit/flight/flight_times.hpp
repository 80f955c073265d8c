// SPDX-License-Identifier: MIT
// Times of the tests of the flight recorder, in ns.
#pragma once

#include <cstdint>

namespace rtev::flight {

inline constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms;

}  // namespace rtev::flight
