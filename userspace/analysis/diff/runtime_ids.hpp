// SPDX-License-Identifier: MIT
// What `diff` counts for each id of a counter or a phase of the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "analysis/diff/recorded_program.hpp"
#include "rtev/names.hpp"

namespace rtev {

/// Which sum or heap figure a counter adds to.
enum class CounterUse : std::uint8_t { none, minor, promoted, major, heap, pool, large };
/// `none` for other counters, and for unknown ids.
CounterUse use_of_counter(Family family, std::uint16_t id);

/// Sums of a phase, and what it says of a pause.
struct PhaseUse {
  std::size_t sum = 0;  ///< 0: it has none
  std::optional<SliceSum> count{};
  std::size_t call = explicit_sums;  ///< in explicit_phases()
  bool is_major = false, is_wait = false;
};
/// The default for unknown ids.
const PhaseUse& use_of_phase(Family family, std::uint16_t id);

}  // namespace rtev
