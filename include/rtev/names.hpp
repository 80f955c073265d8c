// SPDX-License-Identifier: MIT
// Names and units of the ids in events, as OCaml's Runtime_events prints them. Pure functions: thread-safe.
//
// OCaml 5.3 inserted phases in the middle of its list, so an id means one thing before 5.3 and another since; a ring
// file does not say which. Within each of the two families newer versions only appended ids.
// Source: runtime/caml/runtime_events.h of OCaml 5.0 to 5.5.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rtev/event.hpp"

namespace rtev {

/// The table that the ids of a ring belong to.
enum class Family : std::uint8_t {
  before_5_3,  ///< OCaml 5.0, 5.1, 5.2
  since_5_3,   ///< OCaml 5.3 and later
};

/// Name of a runtime phase (EventKind::begin, end), e.g. "minor"; empty if the family has no such id.
std::string_view phase_name(Family family, std::uint16_t id);

/// Name of a counter, e.g. "minor_allocated"; empty if the family has no such id.
std::string_view counter_name(Family family, std::uint16_t id);

/// Unit of a counter's values: "bytes", "words" (of 8 bytes), "blocks", "work" (an abstract unit of OCaml's GC), or
/// empty for a plain number and for a counter that only marks an occurrence.
std::string_view counter_unit(Family family, std::uint16_t id);

/// Name of a lifecycle event, e.g. "ring_start"; empty if unknown.
std::string_view lifecycle_name(std::uint16_t id);

/// Event::id of EventKind::lifecycle; the same in all versions.
enum class Lifecycle : std::uint16_t {
  ring_start = 0,
  ring_stop = 1,
  ring_pause = 2,
  ring_resume = 3,
  fork_parent = 4,
  fork_child = 5,
  domain_spawn = 6,
  domain_terminate = 7,
};

/// True if the event is this lifecycle event.
constexpr bool is_lifecycle(const Event& event, Lifecycle what) {
  return event.kind == EventKind::lifecycle && event.id == static_cast<std::uint16_t>(what);
}

/// Ids to write with DomainWriter. They depend on the family: see find_phase() and find_counter().
enum class Phase : std::uint16_t {};
enum class Counter : std::uint16_t {};

/// The phase that phase_name() calls `name`, e.g. "minor"; nothing if the family has no such phase.
std::optional<Phase> find_phase(Family family, std::string_view name);
/// The counter that counter_name() calls `name`, e.g. "minor_allocated"; nothing if the family has none.
std::optional<Counter> find_counter(Family family, std::string_view name);

/// The family of an OCaml version such as "5.1" or "5.3.0+trunk"; nothing if the text is not an OCaml 5 version.
std::optional<Family> family_of_version(std::string_view version);

/// Guesses the family of a ring from its events, for rings whose program is not at hand. Add the events of each ring in
/// their order. Not thread-safe.
class FamilyGuess {
 public:
  void add(const Event& event);
  /// Nothing until an event occurred that only one family has. The first answer is kept, even if later events
  /// contradict it (a hostile ring).
  std::optional<Family> family() const { return family_; }

 private:
  std::optional<Family> family_;
  Event previous_{};
};

}  // namespace rtev
