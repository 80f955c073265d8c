// SPDX-License-Identifier: MIT
// Numbers on the command line of rtev-load: "250k", "2M".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rtev::load {

/// A whole number of things, k, M or G for powers of 1000, decimals allowed with them ("1.5M"). Nothing if it is
/// something else or more than 10^15.
std::optional<std::uint64_t> parse_count(std::string_view text);

}  // namespace rtev::load
