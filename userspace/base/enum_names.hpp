// SPDX-License-Identifier: MIT
// Names of enumerators.
#pragma once

#include <cstddef>
#include <string_view>

namespace rtev {

/// The name of a value of an enumeration that counts from 0; "unknown" for other values, as damaged files have them.
template <typename Enum, std::size_t count>
constexpr std::string_view name_at(const std::string_view (&names)[count], Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < count ? names[index] : "unknown";
}

}  // namespace rtev
