// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace rtev {

/// The whole text as a number; nothing if it does not fit or there is anything else in the text.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// The number that a text begins with.
template <typename Number>
std::optional<Number> parse_leading_number(std::string_view text, int base = 10) {
  Number number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (result.ec != std::errc{}) return std::nullopt;
  return number;
}

}  // namespace rtev
