// SPDX-License-Identifier: MIT
#include "base/units.hpp"

#include <array>
#include <cstdio>
#include <ctime>
#include <span>

namespace rtev {
namespace {

/// number / unit, rounded half up, without overflow near the end of the range.
std::uint64_t rounded(std::uint64_t number, std::uint64_t unit) {
  return number / unit + (number % unit >= unit - unit / 2 ? 1 : 0);
}

/// number / unit (a multiple of 100) with three significant digits; false, and nothing added, if it has more digits
/// before the point.
bool add_three_digits(TextBuffer& out, std::uint64_t number, std::uint64_t unit) {
  if (const std::uint64_t hundredths = rounded(number, unit / 100); hundredths < 1000) {
    out.add(hundredths / 100, '.', hundredths / 10 % 10, hundredths % 10);
  } else if (const std::uint64_t tenths = rounded(number, unit / 10); tenths < 1000) {
    out.add(tenths / 10, '.', tenths % 10);
  } else if (const std::uint64_t whole = rounded(number, unit); whole < 1000) {
    out.add(whole);
  } else {
    return false;
  }
  return true;
}

struct Unit {
  std::uint64_t factor;
  std::string_view name;
};

/// With three significant digits in the first unit in which the number is less than 1000; false if there is none.
bool add_scaled(TextBuffer& out, std::uint64_t number, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!add_three_digits(out, number, unit.factor)) continue;
    out.add(unit.name);
    return true;
  }
  return false;
}

}  // namespace

void add_duration(TextBuffer& out, std::uint64_t ns) {
  static constexpr Unit units[] = {{1'000, "µs"}, {1'000'000, "ms"}, {1'000'000'000, "s"}};
  if (ns < 1'000) {
    out.add(ns, "ns");
  } else if (!add_scaled(out, ns, units)) {
    out.add_grouped(rounded(ns, 1'000'000'000));
    out.add('s');
  }
}

void add_seconds(TextBuffer& out, std::uint64_t time_ns, std::uint64_t origin_ns, std::size_t width) {
  constexpr std::uint64_t s = 1'000'000'000;
  constexpr std::size_t decimals = 9;
  const bool negative = time_ns < origin_ns;
  const std::uint64_t distance = negative ? origin_ns - time_ns : time_ns - origin_ns;
  std::array<char, 40> text;
  char* const end = text.data() + text.size();
  char* at = end;
  std::uint64_t fraction = distance % s;
  for (std::size_t i = 0; i < decimals; ++i, fraction /= 10) *--at = static_cast<char>('0' + fraction % 10);
  *--at = '.';
  std::uint64_t whole = distance / s;
  do *--at = static_cast<char>('0' + whole % 10);
  while ((whole /= 10) != 0);
  if (negative) *--at = '-';
  const auto length = static_cast<std::size_t>(end - at);
  if (length < width) out.add_repeated(' ', width - length);
  out.add(std::string_view{at, length});
}

void add_time_of_day(TextBuffer& out, std::uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm fields{};
  ::localtime_r(&seconds, &fields);
  std::array<char, 32> text;
  const int length = std::snprintf(text.data(), text.size(), "%02d:%02d:%02d.%06u", fields.tm_hour, fields.tm_min,
                                   fields.tm_sec, static_cast<unsigned>(realtime_ns % 1'000'000'000 / 1'000));
  out.add(std::string_view{text.data(), static_cast<std::size_t>(length)});
}

void add_size(TextBuffer& out, std::uint64_t bytes) {
  static constexpr Unit units[] = {{1'000, " kB"}, {1'000'000, " MB"}, {1'000'000'000, " GB"}};
  if (bytes < 1'000)
    out.add(bytes, " B");
  else if (!add_scaled(out, bytes, units))
    out.add(rounded(bytes, 1'000'000'000), " GB");
}

}  // namespace rtev
