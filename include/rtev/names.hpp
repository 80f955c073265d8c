// SPDX-License-Identifier: MIT
// Names of the numbers in a ring, as OCaml's Runtime_events prints them.
//
// OCaml 5.3 inserted phases in the middle of the list, so the numbers mean different things before and after it; the
// ring's header does not tell. Two tables are enough: within a family newer versions only appended.
// Source: runtime/caml/runtime_events.h of OCaml 5.0 to 5.5.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rtev/event.hpp"

namespace rtev {

/// Which table the ids of a ring belong to.
enum class Family : std::uint8_t {
  before_5_3,  ///< OCaml 5.0, 5.1, 5.2
  since_5_3,   ///< OCaml 5.3 and later
};

/// Name of a runtime phase (EventKind::begin, end), e.g. "minor"; empty if the family has no such id.
std::string_view phase_name(Family family, std::uint16_t id);

/// Name of a counter, e.g. "minor_allocated"; empty if the family has no such id.
std::string_view counter_name(Family family, std::uint16_t id);

/// Unit of a counter: "bytes", "words", "blocks", "work", or empty where the value only marks an occurrence or is
/// a plain number.
std::string_view counter_unit(Family family, std::uint16_t id);

/// Name of a lifecycle event, e.g. "ring_start"; empty if unknown.
std::string_view lifecycle_name(std::uint16_t id);

/// Lifecycle ids that code acts on; the same in all versions.
enum Lifecycle : std::uint16_t {
  ring_start = 0,
  ring_stop = 1,
  ring_pause = 2,
  ring_resume = 3,
  fork_parent = 4,
  fork_child = 5,
  domain_spawn = 6,
  domain_terminate = 7,
};

/// Ids of runtime events as their family counts them: what a producer writes. See find_phase() and find_counter().
enum class Phase : std::uint16_t {};
enum class Counter : std::uint16_t {};

/// The id behind a name that phase_name() gives, e.g. "minor"; nothing if the family has no such phase.
std::optional<Phase> find_phase(Family family, std::string_view name);
/// The id behind a name that counter_name() gives, e.g. "minor_allocated".
std::optional<Counter> find_counter(Family family, std::string_view name);

/// "5.1" and the like to the family it decodes with; nothing if the text is not an OCaml 5 version.
std::optional<Family> family_of_version(std::string_view version);

/// Guesses the family of a ring from what it holds, for rings whose program is not at hand. Feed events in the order
/// of each ring; not thread-safe.
class FamilyGuess {
 public:
  void add(const Event& event);
  /// Nothing until something telling was seen. Contradictions (a hostile ring) keep the first answer.
  std::optional<Family> family() const { return family_; }

 private:
  std::optional<Family> family_;
  Event previous_{};
};

}  // namespace rtev
