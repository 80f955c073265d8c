// SPDX-License-Identifier: MIT
// What --events left out of a recording: reports must not take it for nothing.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <optional>
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

struct NotRecorded {
  std::string selection{};                ///< the options, as in "--events user"; empty: all was recorded
  std::bitset<event_kind_count> kinds{};  ///< by EventKind: of these some or all are missing

  bool has(EventKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
  bool has_phases() const { return has(EventKind::begin); }
  bool has_counters() const { return has(EventKind::counter); }
  /// Of --events.
  std::vector<std::string_view> words() const;
  /// "GC phases and counters were not recorded (--events user)", escaped: of these kinds those that were not, of no
  /// kinds all. Empty if they were.
  std::string text(std::initializer_list<EventKind> kinds = {}) const;
};

}  // namespace rtev
