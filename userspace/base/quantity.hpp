// SPDX-License-Identifier: MIT
// Values on the command line: "500ms", "16M", "250k".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rtev {

/// A number, decimals allowed, with ns, us, ms, s, m or h; seconds without a unit. Nothing if it is not one, is less
/// than a nanosecond or longer than 100 years.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// A number of bytes, k, M or G in either case (powers of 1024). Nothing if it is not one, is less than a byte or
/// beyond 64 GiB.
std::optional<std::size_t> parse_size(std::string_view text);

/// A whole number, with k, M or G for powers of 1000; decimals are allowed with these ("1.5M"). Nothing if it is not
/// one or exceeds 10^15.
std::optional<std::uint64_t> parse_count(std::string_view text);

}  // namespace rtev
