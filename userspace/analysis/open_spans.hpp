// SPDX-License-Identifier: MIT
// The open user spans of a domain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

namespace rtev {

/// A user span that has begun.
struct OpenSpan {
  std::uint32_t slot = 0;   ///< of its ring, for its name
  std::uint16_t event = 0;  ///< its id
  std::uint64_t begin_ns = 0;
};

/// An end belongs to the innermost open span of its name. Of more than `max` open spans the outermost is forgotten.
template <std::size_t max>
class OpenSpans {
 public:
  void begin(const OpenSpan& span) {
    if (spans_.size() == max) spans_.erase(spans_.begin());
    spans_.push_back(span);
  }
  /// The span that ends; nothing if its begin was not seen.
  std::optional<OpenSpan> end(std::uint16_t event) {
    const auto found = std::ranges::find(spans_.rbegin(), spans_.rend(), event, &OpenSpan::event);
    if (found == spans_.rend()) return std::nullopt;
    const OpenSpan span = *found;
    spans_.erase(std::prev(found.base()));
    return span;
  }
  void clear() { spans_.clear(); }
  /// Innermost last.
  const std::vector<OpenSpan>& all() const { return spans_; }

 private:
  std::vector<OpenSpan> spans_;
};

}  // namespace rtev
