// SPDX-License-Identifier: MIT
#include "base/parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>

namespace rtev {
namespace {

struct UnitSuffix {
  std::string_view name;
  double factor;
};

/// A number with one of the units, from `min` to `max`.
std::optional<double> parse_quantity(std::string_view text, std::span<const UnitSuffix> units, double min, double max) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view name(rest, text.data() + text.size());
  const auto unit = std::ranges::find(units, name, &UnitSuffix::name);
  if (unit == units.end()) return std::nullopt;
  const double quantity = number * unit->factor;
  return quantity >= min && quantity <= max ? std::optional(quantity) : std::nullopt;
}

std::optional<std::chrono::nanoseconds> parse_time(std::string_view text, double least_ns) {
  static constexpr std::array<UnitSuffix, 8> units{
      {{"", 1e9}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
  constexpr double century_ns = 100 * 365.25 * 24 * 3600e9;
  constexpr std::string_view digits = "0123456789.";
  double sum_ns = 0, last_unit_ns = century_ns;
  do {
    const std::size_t number = std::min(text.find_first_not_of(digits, 1), text.size());
    const std::size_t end = std::min(text.find_first_of(digits, number), text.size());
    const bool is_only = sum_ns == 0 && end == text.size();
    const auto unit = std::ranges::find(units, text.substr(number, end - number), &UnitSuffix::name);
    const auto part = parse_quantity(text.substr(0, end), units, 0, century_ns);
    // "1h30m": each unit is smaller than the one before, and none is left out.
    if (!part || (!is_only && (unit->name.empty() || unit->factor >= last_unit_ns))) return std::nullopt;
    sum_ns += *part;
    last_unit_ns = unit->factor;
    text.remove_prefix(end);
  } while (!text.empty());
  if (sum_ns < least_ns || sum_ns > century_ns) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(sum_ns));
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  return parse_time(text, 1);
}

std::optional<std::chrono::nanoseconds> parse_limit_duration(std::string_view text) {
  const bool has_unit = !text.empty() && text.back() >= 'a' && text.back() <= 'z';
  return has_unit ? parse_duration(text) : std::nullopt;
}

std::optional<std::chrono::nanoseconds> parse_moment(std::string_view text) {
  return parse_time(text, 0);
}

std::optional<std::size_t> parse_size(std::string_view text) {
  static constexpr std::array<UnitSuffix, 7> units{
      {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}}};
  const auto bytes = parse_quantity(text, units, 1, 64.0 * (1 << 30));
  if (!bytes) return std::nullopt;
  return static_cast<std::size_t>(*bytes);
}

std::optional<std::uint64_t> parse_file_size(std::string_view text) {
  constexpr double k = 1 << 10, m = 1 << 20, g = 1 << 30, t = 1024.0 * g;
  static constexpr std::array<UnitSuffix, 9> units{
      {{"", 1}, {"K", k}, {"M", m}, {"G", g}, {"T", t}, {"k", k}, {"m", m}, {"g", g}, {"t", t}}};
  const auto bytes = parse_quantity(text, units, 0, 1024.0 * t);
  if (!bytes) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<double> parse_percentage(std::string_view text) {
  static constexpr std::array<UnitSuffix, 1> units{{{"%", 0.01}}};
  return parse_quantity(text, units, 0, 1);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  static constexpr std::array<UnitSuffix, 4> units{{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}}};
  const auto count = parse_quantity(text, units, 0, 1e15);  // a double has all whole numbers up to there
  if (!count || *count != std::floor(*count)) return std::nullopt;
  return static_cast<std::uint64_t>(*count);
}

std::string_view take_until(std::string_view& text, char separator) {
  const auto at = text.find(separator);
  const auto taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

std::string_view take_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace rtev
