// SPDX-License-Identifier: MIT
// Numbers in text: of /proc, of options.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace rtev {

/// The whole text as a number; nothing for other text and numbers out of range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// The number at the beginning of a text.
template <typename Number>
std::optional<Number> parse_leading_number(std::string_view text, int base = 10) {
  Number number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (result.ec != std::errc{}) return std::nullopt;
  return number;
}

/// Removes the text up to `separator`, and the separator, from the front; all of it if there is none.
std::string_view take_until(std::string_view& text, char separator);
/// Removes the next word, which blanks separate, from the front; empty at the end.
std::string_view take_word(std::string_view& text);

/// A duration such as "500ms" or "1h30m": decimal numbers with ns, us, ms, s, m or h; one number without a unit is of
/// seconds. Nothing for other text and outside of 1 ns to 100 years.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// The same, but it needs a unit: a limit of "5" that means 5 ms would be one of 5 s.
std::optional<std::chrono::nanoseconds> parse_limit_duration(std::string_view text);

/// The same from 0 on: so long after a beginning.
std::optional<std::chrono::nanoseconds> parse_moment(std::string_view text);

/// A number of bytes such as "16M": a decimal number with k, M or G in either case (powers of 1024). Nothing for other
/// text and outside of 1 byte to 64 GiB.
std::optional<std::size_t> parse_size(std::string_view text);

/// The same with T, from 0 bytes to 1 PiB: a size of files and disks.
std::optional<std::uint64_t> parse_file_size(std::string_view text);

/// A share such as "5%", from 0 to 1. Nothing for other text and beyond 100 %.
std::optional<double> parse_percentage(std::string_view text);

/// A whole number such as "1.5M", with k, M or G for powers of 1000. Nothing for other text and beyond 10^15.
std::optional<std::uint64_t> parse_count(std::string_view text);

}  // namespace rtev
