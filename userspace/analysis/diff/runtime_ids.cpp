// SPDX-License-Identifier: MIT
#include "analysis/diff/runtime_ids.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "analysis/stats/stats_figures.hpp"

namespace rtev {
namespace {

constexpr std::size_t counter_ids = 64;

/// What counters of a family are used for, by id.
std::array<CounterUse, counter_ids> uses_in(Family family) {
  std::array<CounterUse, counter_ids> uses{};
  for (const auto& [name, use] : {std::pair{"minor_allocated", CounterUse::minor},
                                  {"minor_promoted", CounterUse::promoted},
                                  {"major_allocated_words", CounterUse::major},
                                  {"major_heap_words", CounterUse::heap},
                                  {"major_heap_pool_words", CounterUse::pool},
                                  {"major_heap_large_words", CounterUse::large}}) {
    if (const auto id = find_counter(family, name)) uses[static_cast<std::size_t>(*id)] = use;
  }
  return uses;
}

std::array<PhaseUse, phase_sums> phases_in(Family family) {
  std::array<PhaseUse, phase_sums> uses{};
  for (std::size_t id = 0; id < uses.size(); ++id) {
    const std::string_view name = phase_name(family, static_cast<std::uint16_t>(id));
    const auto now = find_phase(Family::since_5_3, name);
    if (name.empty() || !now) continue;
    PhaseUse& use = uses[id];
    use.sum = first_phase_sum + static_cast<std::size_t>(*now);
    use.call = static_cast<std::size_t>(std::ranges::find(explicit_phases(), name) - explicit_phases().begin());
    use.is_major = name.starts_with("major");
    use.is_wait = name == "domain_condition_wait";
    if (name == "minor") use.count = SliceSum::minor_collections;
    if (name == "major_gc_stw") use.count = SliceSum::major_cycles;
  }
  return uses;
}

}  // namespace

CounterUse use_of_counter(Family family, std::uint16_t id) {
  static const auto before = uses_in(Family::before_5_3), since = uses_in(Family::since_5_3);
  return id >= counter_ids ? CounterUse::none : (family == Family::since_5_3 ? since : before)[id];
}

const PhaseUse& use_of_phase(Family family, std::uint16_t id) {
  static const auto before = phases_in(Family::before_5_3), since = phases_in(Family::since_5_3);
  static const PhaseUse unknown{};
  return id >= phase_sums ? unknown : (family == Family::since_5_3 ? since : before)[id];
}

}  // namespace rtev
