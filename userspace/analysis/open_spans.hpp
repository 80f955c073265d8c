// SPDX-License-Identifier: MIT
// The open user spans of a domain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/spans/library_spans.hpp"

namespace rtev {

/// A user span that has begun.
struct OpenSpan {
  std::uint32_t slot = 0;   ///< of its ring, for its name
  std::uint16_t event = 0;  ///< its id
  std::uint64_t begin_ns = 0;
  bool of_library = false;              ///< then it has a name instead of an event
  std::optional<std::int64_t> fiber{};  ///< LibrarySpanEvent::fiber
  std::string name{};
  std::optional<std::size_t> counted_at{};  ///< of Stats: in ProcessStats::user_events

  /// `end` may end it.
  bool is_ended_by(const LibrarySpanEvent& end) const {
    return of_library && fiber == end.fiber && (fiber || name == end.name);
  }
};

/// An end belongs to the innermost open span that it may end. Of more than `max` open spans the outermost is forgotten.
template <std::size_t max>
class OpenSpans {
 public:
  void begin(OpenSpan span) {
    if (spans_.size() == max) spans_.erase(spans_.begin());
    spans_.push_back(std::move(span));
  }
  /// The span that ends; nothing if its begin was not seen.
  std::optional<OpenSpan> end(std::uint16_t event) {
    return take([&](const OpenSpan& span) { return !span.of_library && span.event == event; });
  }
  std::optional<OpenSpan> end(const LibrarySpanEvent& end) {
    return take([&](const OpenSpan& span) { return span.is_ended_by(end); });
  }
  /// Forgets those of a fiber.
  void end_fiber(std::int64_t fiber) {
    std::erase_if(spans_, [&](const OpenSpan& span) { return span.fiber == fiber; });
  }
  void clear() { spans_.clear(); }
  /// Innermost last.
  const std::vector<OpenSpan>& all() const { return spans_; }

 private:
  template <typename Predicate>
  std::optional<OpenSpan> take(const Predicate& ends) {
    const auto found = std::ranges::find_if(spans_.rbegin(), spans_.rend(), ends);
    if (found == spans_.rend()) return std::nullopt;
    OpenSpan span = std::move(*found);
    spans_.erase(std::prev(found.base()));
    return span;
  }

  std::vector<OpenSpan> spans_;
};

}  // namespace rtev
