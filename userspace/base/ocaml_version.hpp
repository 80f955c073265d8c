// SPDX-License-Identifier: MIT
// Versions of OCaml, compared by their numbers.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace rtev {

/// "5.3" and "5.3.0", "5.5.0~alpha1", "5.2.0+ox". Ordered by time: 5.9 is before 5.10, and what is before a release is
/// before it. What the letters say is not compared.
struct OcamlVersion {
  enum class Stage : std::uint8_t {
    before_release,  ///< "~", or "-" as in git's tags
    release,
    variant,  ///< "+": made from it
  };
  std::uint32_t major = 0, minor = 0, patch = 0;
  Stage stage = Stage::release;

  /// Nothing for other text.
  static std::optional<OcamlVersion> parse(std::string_view text);

  /// With the first two numbers only: what the runtime's layout and the ids of events depend on.
  constexpr OcamlVersion series() const { return {.major = major, .minor = minor}; }

  constexpr auto operator<=>(const OcamlVersion&) const = default;
};

inline std::optional<OcamlVersion> OcamlVersion::parse(std::string_view text) {
  OcamlVersion version;
  const auto take_number = [&text](std::uint32_t& number) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return error == std::errc{};
  };
  const auto take_dot = [&text] {
    const bool is_dot = text.starts_with('.');
    text.remove_prefix(is_dot ? 1 : 0);
    return is_dot;
  };
  if (!take_number(version.major) || !take_dot() || !take_number(version.minor)) return std::nullopt;
  if (take_dot() && !take_number(version.patch)) return std::nullopt;
  if (text.empty()) return version;
  if (text.front() != '+' && text.front() != '~' && text.front() != '-') return std::nullopt;
  version.stage = text.front() == '+' ? Stage::variant : Stage::before_release;
  return version;
}

}  // namespace rtev
