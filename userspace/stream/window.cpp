// SPDX-License-Identifier: MIT
#include "stream/window.hpp"

#include <algorithm>
#include <ctime>

#include "base/parse.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000, day_ns = 86'400 * second_ns;

/// "14:03:22.125" or "14:03", since midnight.
std::optional<std::chrono::nanoseconds> parse_time_of_day(std::string_view text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  const auto hours = parse_number<unsigned>(text.substr(0, first));
  const auto minutes = parse_number<unsigned>(text.substr(first + 1, second - first - 1));
  const std::string_view rest = second == std::string_view::npos ? "0" : text.substr(second + 1);
  const auto seconds = parse_moment(rest);
  constexpr std::uint64_t minute_ns = 60 * second_ns;
  if (!hours || !minutes || !seconds || *hours > 23 || *minutes > 59) return std::nullopt;
  if (rest.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  if (static_cast<std::uint64_t>(seconds->count()) >= minute_ns) return std::nullopt;
  return std::chrono::hours(*hours) + std::chrono::minutes(*minutes) + *seconds;
}

/// Local time of day, since midnight.
std::uint64_t time_of_day_ns(std::uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / second_ns);
  std::tm fields{};
  ::localtime_r(&seconds, &fields);
  const int of_day = (fields.tm_hour * 60 + fields.tm_min) * 60 + fields.tm_sec;
  return static_cast<std::uint64_t>(of_day) * second_ns + realtime_ns % second_ns;
}

}  // namespace

std::optional<TimePoint> TimePoint::parse(std::string_view text) {
  if (text.contains(':')) {
    const auto time = parse_time_of_day(text);
    return time ? std::optional(TimePoint{.time = *time, .is_time_of_day = true}) : std::nullopt;
  }
  const auto time = parse_moment(text);
  return time ? std::optional(TimePoint{.time = *time}) : std::nullopt;
}

std::uint64_t TimePoint::in(const RunHeader& header) const {
  const auto ns = static_cast<std::uint64_t>(time.count());
  if (!is_time_of_day) return header.start_ns + ns;
  if (header.start_realtime_ns == 0) return header.start_ns;
  return header.start_ns + (ns + day_ns - time_of_day_ns(header.start_realtime_ns)) % day_ns;
}

Window::Bounds Window::in(const RunHeader& header) const {
  Bounds bounds;
  if (around) {
    const std::uint64_t middle_ns = around->in(header);
    const auto margin_ns = static_cast<std::uint64_t>(around_margin.count());
    bounds = {.begin_ns = middle_ns - std::min(middle_ns, margin_ns), .end_ns = middle_ns + margin_ns};
  }
  if (from) bounds.begin_ns = from->in(header);
  if (to) bounds.end_ns = to->in(header);
  if (duration)
    bounds.end_ns = std::min(
        bounds.end_ns, std::max(bounds.begin_ns, header.start_ns) + static_cast<std::uint64_t>(duration->count()));
  return bounds;
}

}  // namespace rtev
