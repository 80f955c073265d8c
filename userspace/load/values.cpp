// SPDX-License-Identifier: MIT
#include "load/values.hpp"

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

namespace rtev::load {

std::optional<std::uint64_t> parse_count(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit(rest, text.data() + text.size());
  const double factor = unit.empty() ? 1 : unit == "k" ? 1e3 : unit == "M" ? 1e6 : unit == "G" ? 1e9 : 0;
  const double count = number * factor;
  constexpr double most = 1e15;  // a double holds each whole number up to there
  if (factor == 0 || !(count >= 0 && count <= most) || count != std::floor(count)) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

}  // namespace rtev::load
