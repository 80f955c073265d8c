// SPDX-License-Identifier: MIT
// What --events left out of a recording: reports must not take it for nothing.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rtev/event.hpp"

namespace rtev {

/// A word of --events for some kinds of events.
struct KindWord {
  std::string_view word, name;  ///< the name is for people
  std::vector<EventKind> kinds;
};
const std::vector<KindWord>& kind_words();

/// The phases that OCaml's runtime begins while no other is open, in all versions: a pause is one of these.
std::span<const std::string_view> outermost_phases();

struct NotRecorded {
  using Phases = std::bitset<64>;  ///< by id

  std::string selection{};                ///< the options, as in "--events user"; empty: all was recorded
  std::bitset<event_kind_count> kinds{};  ///< by EventKind: of these some or all are missing
  std::bitset<event_kind_count> seen{};   ///< of these some were there; known at the end
  /// Of GC phases the missing ones, by Family. None, although some are missing: it may be any.
  std::array<Phases, 2> phases{};

  bool has(EventKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
  bool has_phases() const { return has(EventKind::begin); }
  bool lacks_phase(std::string_view name) const;
  /// Of outermost_phases().
  std::vector<std::string_view> outermost() const;
  /// Without an outermost phase the ones in it look like pauses: then no pause is known.
  bool lacks_pauses() const { return !outermost().empty(); }
  bool has_counters() const { return has(EventKind::counter); }
  /// At the end: how many events of each kind there were.
  void note(const std::array<std::uint64_t, event_kind_count>& events) {
    for (std::size_t kind = 0; kind < events.size(); ++kind) seen.set(kind, events[kind] > 0);
  }
  /// Of --events.
  std::vector<std::string_view> words() const;
  /// "counters were not recorded, nor all GC phases (--events minor; without major, stw_leader and 10 more)", escaped:
  /// of these kinds, of no kinds all. Empty if they were.
  std::string text(std::initializer_list<EventKind> kinds = {}) const;

 private:
  std::string without_outermost() const;
};

}  // namespace rtev
