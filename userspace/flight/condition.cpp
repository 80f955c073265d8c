// SPDX-License-Identifier: MIT
#include "flight/condition.hpp"

#include "analysis/spans/span_condition.hpp"
#include "base/enum_names.hpp"
#include "base/parse.hpp"

namespace rtev::flight {
namespace {

constexpr std::uint64_t default_share_ns = 10'000'000'000, min_share_ns = 100'000'000;

bool parse_share(std::string_view text, Condition& condition) {
  const std::size_t slash = text.find('/');
  const auto share = parse_percentage(text.substr(0, slash));
  condition.over_ns = default_share_ns;
  if (slash != std::string_view::npos) {
    const auto over = parse_limit_duration(text.substr(slash + 1));
    if (!over) return false;
    condition.over_ns = static_cast<std::uint64_t>(over->count());
  }
  condition.limit = share.value_or(0);
  return share && condition.over_ns >= min_share_ns;
}

bool parse_time(std::string_view text, Condition& condition) {
  const auto time = parse_limit_duration(text);
  if (time) condition.limit = static_cast<double>(time->count());
  return time.has_value();
}

bool parse_heap(std::string_view text, Condition& condition) {
  const auto bytes = parse_file_size(text);
  if (bytes) condition.limit = static_cast<double>(*bytes);
  return bytes && *bytes > 0;
}

}  // namespace

std::string_view to_string(Condition::What what) {
  static constexpr std::string_view names[]{"pause", "span", "sched-delay", "heap", "gc-share", "lost"};
  return name_at(names, what);
}

std::optional<Condition> parse_condition(std::string_view text) {
  using What = Condition::What;
  Condition condition{.text = std::string(text)};
  bool good = false;
  if (constexpr std::string_view span = "span:"; text.starts_with(span)) {
    condition.what = What::span;
    const auto parsed = parse_span_condition(text.substr(span.size()));
    good = parsed && parsed->min_ns > 0;
    if (good) {
      condition.pattern = parsed->pattern;
      condition.limit = static_cast<double>(parsed->min_ns);
    }
  } else if (text == "lost") {
    condition.what = What::lost;
    good = true;
  } else if (const std::size_t sign = text.find('>'); sign != std::string_view::npos) {
    const std::string_view figure = text.substr(0, sign), limit = text.substr(sign + 1);
    if (figure == "pause" || figure == "sched-delay") {
      condition.what = figure == "pause" ? What::pause : What::sched_delay;
      good = parse_time(limit, condition);
    } else if (figure == "heap") {
      condition.what = What::heap;
      good = parse_heap(limit, condition);
    } else if (figure == "gc-share") {
      condition.what = What::gc_share;
      good = parse_share(limit, condition);
    }
  }
  return good ? std::optional(std::move(condition)) : std::nullopt;
}

}  // namespace rtev::flight
