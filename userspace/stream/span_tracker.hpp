// SPDX-License-Identifier: MIT
// Which spans are open in each ring: nesting depth and durations for the text format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rtev/event.hpp"
#include "stream/registry.hpp"
#include "stream/span_stack.hpp"

namespace rtev {

/// Follows begins and ends ring by ring. A ring belongs to a domain, whose threads take turns, and events may be
/// missing: spans need not nest, ends come without begins and begins without ends. Memory is bounded.
class SpanTracker {
 public:
  /// A ring, by the process image it belongs to: slots are re-used.
  struct Ring {
    ProcessIndex process;
    std::uint16_t domain;
  };
  /// Identifies a span within a ring: runtime phase or user span, and its id.
  struct Span {
    bool user;
    std::uint16_t id;
    bool operator==(const Span&) const = default;
  };
  struct Ended {
    std::size_t depth;                         ///< where the span's begin was
    std::optional<std::uint64_t> duration_ns;  ///< nothing if its begin is unknown
  };

  /// Bounds of memory: rings, and open spans of all rings.
  struct Limits {
    std::size_t rings = std::size_t{1} << 16;
    std::size_t open = std::size_t{1} << 20;
  };
  SpanTracker() : SpanTracker(Limits{}) {}
  explicit SpanTracker(Limits limits) : limits_(limits) {}

  /// Spans open in a ring now.
  std::size_t depth(Ring ring) const;
  /// Opens a span; returns the depth it begins at.
  std::size_t begin(Ring ring, Span span, std::uint64_t time);
  /// Ends the innermost open span with this identity, and all spans inside it, whose ends are missing. An end without a
  /// begin changes nothing.
  Ended end(Ring ring, Span span, std::uint64_t time);
  /// Forgets the spans of one ring (after a loss, or with a new domain), of one process.
  void reset(Ring ring);
  void forget(ProcessIndex process);
  /// Forgets processes that ended without an event in the stream. Cheap enough for every batch.
  void forget_ended(const Registry& registry);

 private:
  using Key = std::uint64_t;  ///< ordered by process

  static constexpr Key key_of(Ring ring) { return Key{ring.process} << 16 | ring.domain; }
  void make_room(SpanStack& stack);

  static constexpr std::size_t max_depth = 1024;
  static constexpr std::size_t sweep_at_least = 1024;

  Limits limits_;
  std::map<Key, SpanStack> stacks_;
  std::size_t open_ = 0;  ///< in all stacks
  std::size_t sweep_at_ = sweep_at_least;
};

}  // namespace rtev
