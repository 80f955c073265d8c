// SPDX-License-Identifier: MIT
#include "analysis/spans/span_condition.hpp"

#include <fnmatch.h>

#include "base/parse.hpp"

namespace rtev {

bool SpanCondition::matches(const std::string& name) const {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::optional<SpanCondition> parse_span_condition(std::string_view text) {
  const std::size_t limit = text.rfind('>');
  SpanCondition condition{.pattern = std::string(text.substr(0, limit))};
  if (condition.pattern.empty()) return std::nullopt;
  if (limit == std::string_view::npos) return condition;
  const auto time = parse_limit_duration(text.substr(limit + 1));
  if (!time) return std::nullopt;
  condition.min_ns = static_cast<std::uint64_t>(time->count());
  return condition;
}

}  // namespace rtev
