// SPDX-License-Identifier: MIT
// Which user spans an option means: 'request', 'request>20ms'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rtev {

struct SpanCondition {
  std::string pattern{};     ///< of names, with wildcards; not empty
  std::uint64_t min_ns = 0;  ///< the least length

  bool matches(const std::string& name) const;
  bool operator==(const SpanCondition&) const = default;
};

/// "NAME" or "NAME>TIME", where the time has a unit.
std::optional<SpanCondition> parse_span_condition(std::string_view text);

}  // namespace rtev
