// SPDX-License-Identifier: MIT
#include "rtev/names.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/enum_names.hpp"
#include "base/ocaml_version.hpp"

namespace rtev {
namespace {

// OCaml 5.5's table; 5.3 is its first 48 entries.
constexpr std::string_view phases_since_5_3[] = {
    "explicit_gc_set",
    "explicit_gc_stat",
    "explicit_gc_minor",
    "explicit_gc_major",
    "explicit_gc_full_major",
    "explicit_gc_compact",
    "major",
    "major_sweep",
    "major_mark_roots",
    "major_memprof_roots",
    "major_mark",
    "minor",
    "minor_local_roots",
    "minor_memprof_roots",
    "minor_memprof_clean",
    "minor_finalized",
    "explicit_gc_major_slice",
    "finalise_update_first",
    "finalise_update_last",
    "interrupt_remote",
    "major_ephe_mark",
    "major_ephe_sweep",
    "major_finish_marking",
    "major_gc_cycle_domains",
    "major_gc_phase_change",
    "major_gc_stw",
    "major_mark_opportunistic",
    "major_slice",
    "major_finish_cycle",
    "minor_clear",
    "minor_finalizers_oldify",
    "minor_global_roots",
    "minor_leave_barrier",
    "stw_api_barrier",
    "stw_handler",
    "stw_leader",
    "major_finish_sweeping",
    "major_memprof_clean",
    "minor_finalizers_admin",
    "minor_remembered_set",
    "minor_remembered_set_promote",
    "minor_local_roots_promote",
    "domain_condition_wait",
    "domain_resize_heap_reservation",
    "compaction",
    "compaction_evacuate",
    "compaction_forward",
    "compaction_release",
    "empty_minor",
    "minor_ephe_clean",
};

// OCaml 5.2's table has those of 5.3 but for memory profiling; 5.0 and 5.1 are its first 40 entries.
constexpr std::size_t phases_of_5_3 = 48;
constexpr auto phases_before_5_3 = [] {
  std::array<std::string_view, phases_of_5_3 - 4> phases;
  std::ranges::copy_if(std::span(phases_since_5_3).first(phases_of_5_3), phases.begin(),
                       [](std::string_view name) { return !name.contains("memprof"); });
  return phases;
}();

// One table for all versions, which only appended: 5.1 to 5.2 have the first 17 entries.
constexpr std::string_view counters[] = {
    "force_minor_alloc_small",
    "force_minor_make_vect",
    "force_minor_set_minor_heap_size",
    "force_minor_memprof",
    "minor_promoted",
    "minor_allocated",
    "request_major_alloc_shr",
    "request_major_adjust_gc_speed",
    "request_minor_realloc_ref_table",
    "request_minor_realloc_ephe_ref_table",
    "request_minor_realloc_custom_table",
    "major_heap_pool_words",
    "major_heap_pool_live_words",
    "major_heap_large_words",
    "major_heap_pool_frag_words",
    "major_heap_pool_live_blocks",
    "major_heap_large_blocks",
    "major_heap_words",
    "major_allocated_words",
    "major_allocated_work",
    "major_dependent_work",
    "major_extra_work",
    "major_work_counter",
    "major_alloc_counter",
    "major_slice_target",
    "major_slice_budget",
    "minor_allocated_words",
    "minor_promoted_words",
};
constexpr std::size_t counters_before_5_3 = 17;

constexpr std::string_view lifecycles[] = {
    "ring_start",  "ring_stop",  "ring_pause",   "ring_resume",
    "fork_parent", "fork_child", "domain_spawn", "domain_terminate",
};

/// Empty beyond the table.
std::string_view at(std::span<const std::string_view> names, std::uint16_t id) {
  return id < names.size() ? names[id] : std::string_view{};
}

std::span<const std::string_view> counters_of(Family family) {
  const std::span<const std::string_view> all{counters};
  return family == Family::before_5_3 ? all.first(counters_before_5_3) : all;
}

std::span<const std::string_view> phases_of(Family family) {
  return family == Family::before_5_3 ? std::span<const std::string_view>{phases_before_5_3} : phases_since_5_3;
}

template <typename Id>
std::optional<Id> find(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Id>(found - names.begin());
}

}  // namespace

std::optional<Phase> find_phase(Family family, std::string_view name) {
  return find<Phase>(phases_of(family), name);
}

std::optional<Counter> find_counter(Family family, std::string_view name) {
  return find<Counter>(counters_of(family), name);
}

std::string_view phase_name(Family family, std::uint16_t id) {
  return at(phases_of(family), id);
}

std::string_view counter_name(Family family, std::uint16_t id) {
  return at(counters_of(family), id);
}

std::string_view counter_unit(Family family, std::uint16_t id) {
  const std::string_view name = counter_name(family, id);
  // Documented as words before 5.5, but the runtime has always written bytes.
  if (name == "minor_promoted" || name == "minor_allocated") return "bytes";
  if (name.ends_with("_words")) return "words";
  if (name.ends_with("_blocks")) return "blocks";
  if (name.ends_with("_work")) return "work";
  return {};
}

std::string_view lifecycle_name(std::uint16_t id) {
  return at(lifecycles, id);
}

std::string_view to_string(EventKind kind) {
  static constexpr std::string_view names[] = {
      "begin",    "end",         "counter", "alloc",   "lifecycle", "user_unit", "user_int", "user_begin",
      "user_end", "user_custom", "lost",    "process", "switch",    "wakeup",    "sample",   "usage"};
  static_assert(std::size(names) == event_kind_count);
  return name_at(names, kind);
}

std::string_view to_string(LossReason reason) {
  static constexpr std::string_view names[] = {"overwritten", "corrupt", "dropped",       "overflow",
                                               "unprobed",    "samples", "sleep_samples", "allocation_samples"};
  return name_at(names, reason);
}

std::optional<Family> family_of_version(std::string_view version) {
  const auto parsed = OcamlVersion::parse(version);
  if (!parsed || parsed->major != 5) return std::nullopt;
  return parsed->series() < OcamlVersion{.major = 5, .minor = 3} ? Family::before_5_3 : Family::since_5_3;
}

void FamilyGuess::add(const Event& event) {
  if (family_) return;
  // Ids that only the later family has. 5.3 emits such counters at every major slice.
  if ((event.kind == EventKind::counter && event.id >= counters_before_5_3 && event.id < std::size(counters)) ||
      ((event.kind == EventKind::begin || event.kind == EventKind::end) && event.id >= std::size(phases_before_5_3) &&
       event.id < std::size(phases_since_5_3)))
    family_ = Family::since_5_3;
  // The phases that directly begin inside a minor collection: its roots and its remembered set.
  if (event.kind == EventKind::begin && previous_.kind == EventKind::begin && previous_.source == event.source) {
    const auto begins_in = [&](unsigned outer, unsigned global_roots, unsigned remembered_set) {
      return previous_.id == outer && (event.id == global_roots || event.id == remembered_set);
    };
    if (begins_in(10, 28, 35)) family_ = Family::before_5_3;
    if (begins_in(11, 31, 39)) family_ = Family::since_5_3;
  }
  previous_ = event;
}

}  // namespace rtev
