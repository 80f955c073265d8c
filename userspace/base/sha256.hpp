// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4), for the Content-Security-Policy of pages.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rtev {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);

}  // namespace rtev
