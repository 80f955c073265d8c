// SPDX-License-Identifier: MIT
// The phases of the runtime in families: what the collector was busy with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rtev/names.hpp"

namespace rtev {

enum class PhaseFamily : std::uint8_t {
  minor,
  mark,
  sweep,
  major,  ///< the rest of the major collector: cycles, changes of phase
  compact,
  finalise,       ///< looks for values to finalise, and calls functions of the program
  explicit_call,  ///< the rest of a call of Gc
  stw,            ///< stop-the-world sections, without the waits
  barrier,        ///< waits for other domains
  other,
};
inline constexpr std::size_t phase_family_count = 10;
/// Values of the label "phase".
std::string_view to_string(PhaseFamily family);

/// What matters of a phase id.
struct PhaseFacts {
  PhaseFamily family = PhaseFamily::other;
  bool is_minor = false, is_major_slice = false, is_major_cycle = false, is_compaction = false;
  std::optional<std::uint8_t> explicit_call{};  ///< index in explicit_phases()
};
/// Ids beyond those of the family are `other`.
const PhaseFacts& facts_of(Family family, std::uint16_t phase);

}  // namespace rtev
