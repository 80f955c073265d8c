// SPDX-License-Identifier: MIT
// A text "/tmp" that a running program has anyway.
#pragma once

#include <cstdint>

#include "enable/target.hpp"

namespace rtev::enable {

inline constexpr const char* temporary_directory = "/tmp";

/// The address of this text, with a zero behind it, among the constants of the program or of the C library: both stay
/// mapped as long as the program runs. 0 if there is none.
std::uint64_t find_temporary_directory(const Target& target);

}  // namespace rtev::enable
