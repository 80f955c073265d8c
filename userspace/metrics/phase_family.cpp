// SPDX-License-Identifier: MIT
#include "metrics/phase_family.hpp"

#include <algorithm>

#include "analysis/stats/stats_figures.hpp"
#include "base/enum_names.hpp"

namespace rtev {
namespace {

constexpr std::size_t phase_ids = Tally::phase_ids;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

PhaseFamily family_of(std::string_view name) {
  if (is_one_of(name, {"minor_leave_barrier", "stw_api_barrier"})) return PhaseFamily::barrier;
  if (is_one_of(name, {"stw_leader", "stw_handler", "interrupt_remote"})) return PhaseFamily::stw;
  if (name.starts_with("explicit_gc_")) return PhaseFamily::explicit_call;
  if (name.starts_with("compaction")) return PhaseFamily::compact;
  if (name.starts_with("finalise_") ||
      is_one_of(name, {"minor_finalized", "minor_finalizers_oldify", "minor_finalizers_admin"}))
    return PhaseFamily::finalise;
  if (name.starts_with("minor") || name == "empty_minor") return PhaseFamily::minor;
  if (is_one_of(name, {"major_sweep", "major_ephe_sweep", "major_finish_sweeping"})) return PhaseFamily::sweep;
  if (is_one_of(name, {"major_mark", "major_mark_roots", "major_mark_opportunistic", "major_memprof_roots",
                       "major_ephe_mark", "major_finish_marking"}))
    return PhaseFamily::mark;
  return name.starts_with("major") ? PhaseFamily::major : PhaseFamily::other;
}

using Facts = std::array<PhaseFacts, phase_ids>;

Facts facts_of(Family family) {
  Facts facts;
  for (std::uint16_t id = 0; id < phase_ids; ++id) {
    const std::string_view name = phase_name(family, id);
    if (name.empty()) break;
    const auto call = std::ranges::find(explicit_phases(), name);
    facts[id] = {.family = family_of(name),
                 .is_minor = name == "minor",
                 .is_major_slice = name == "major_slice",
                 .is_major_cycle = name == "major_gc_stw",
                 .is_compaction = name == "compaction"};
    if (call != explicit_phases().end())
      facts[id].explicit_call = static_cast<std::uint8_t>(call - explicit_phases().begin());
  }
  return facts;
}

}  // namespace

std::string_view to_string(PhaseFamily family) {
  static constexpr std::string_view names[]{"minor",    "mark",     "sweep", "major",   "compact",
                                            "finalise", "explicit", "stw",   "barrier", "other"};
  return name_at(names, family);
}

const PhaseFacts& facts_of(Family family, std::uint16_t phase) {
  static const Facts before = facts_of(Family::before_5_3), since = facts_of(Family::since_5_3);
  static const PhaseFacts unknown;
  if (phase >= phase_ids) return unknown;
  return (family == Family::before_5_3 ? before : since)[phase];
}

}  // namespace rtev
