// SPDX-License-Identifier: MIT
// The spans that are open in a ring, or on one of the threads that write it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "rtev/event.hpp"

namespace rtev {

/// A runtime phase; otherwise a user span.
inline bool is_phase(const Event& event) {
  return event.kind == EventKind::begin || event.kind == EventKind::end;
}

/// The one stack of open spans, by the events that began them, outermost first. What an end closes besides its own span
/// is a decision of the users, who differ in it on purpose: for SpanTracker (text) spans nest by time alone;
/// TrackBuilder resumes user spans that a phase does not nest with, as viewers must show them; PauseFinder takes only
/// phases, for which it knows the rules of the runtime. One thread.
class SpanStack {
 public:
  bool empty() const { return begins_.empty(); }
  std::size_t size() const { return begins_.size(); }
  const Event& operator[](std::size_t index) const { return begins_[index]; }
  const Event& innermost() const { return begins_.back(); }
  std::span<const Event> all() const { return begins_; }

  void push(const Event& begin) { begins_.push_back(begin); }
  void pop() { begins_.pop_back(); }
  /// Removes the spans from this index on.
  void truncate(std::size_t size) { begins_.resize(size, Event{}); }
  void remove_outermost(std::size_t count) {
    begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// Whether both events are of spans with the same name.
  static bool same_span(const Event& one, const Event& other) {
    return is_phase(one) == is_phase(other) && one.id == other.id;
  }
  /// The index of the innermost span that `end` may end.
  std::optional<std::size_t> find(const Event& end) const {
    const auto match =
        std::find_if(begins_.rbegin(), begins_.rend(), [&](const Event& begin) { return same_span(begin, end); });
    if (match == begins_.rend()) return std::nullopt;
    return static_cast<std::size_t>(std::prev(match.base()) - begins_.begin());
  }

 private:
  std::vector<Event> begins_;
};

}  // namespace rtev
