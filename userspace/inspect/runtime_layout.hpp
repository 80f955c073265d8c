// SPDX-License-Identifier: MIT
// What differs by version in OCaml's runtime, in one table. A new version of OCaml is a line in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ocaml_version.hpp"

namespace rtev {

/// Where a domain's state (caml_domain_state) has some of its fields: in words from its beginning.
struct DomainLayout {
  std::uint32_t young_limit = 0, young_ptr = 0, young_start = 0, young_end = 0;
  std::uint32_t action_pending = 0, requested_external_interrupt = 0, id = 0;
  bool operator==(const DomainLayout&) const = default;
};

/// Words of a domain's state, by their number in it, that lead to stacks and to the minor heap. 0 = not known.
struct StackLayout {
  std::uint8_t young_ptr = 0, young_start = 0, young_end = 0;
  std::uint8_t young_trigger = 0;  ///< 5.0 has none: young_start
  std::uint8_t current_stack = 0;  ///< 0, too, for bytecode
  std::uint8_t c_stack = 0;
  std::uint8_t domain_state = 0;  ///< of what domain_self points to: the address of the domain's state
  std::uint8_t local_roots = 0;
  bool operator==(const StackLayout&) const = default;
};

/// The runtime of the releases of a version, e.g. 5.3.0 and 5.3.1 of 5.3.
struct RuntimeLayout {
  OcamlVersion version;
  /// Came with this version, and has been linked into every program since.
  std::string_view function;
  /// Words of a domain's state. 0 = not known.
  std::uint8_t id, requested_external_interrupt, young_trigger, current_stack, c_stack, local_roots;
  /// Word of a domain's internal record (struct dom_internal), to which domain_self points.
  std::uint8_t state_in_domain;

  /// Nothing is known of a version whose stacks were not tested.
  constexpr StackLayout stacks() const {
    if (current_stack == 0) return {};
    return {.young_ptr = 1,
            .young_start = 2,
            .young_end = 3,
            .young_trigger = young_trigger,
            .current_stack = current_stack,
            .c_stack = c_stack,
            .domain_state = state_in_domain,
            .local_roots = local_roots};
  }
  /// What enable/ reads and writes. Nothing for a version with which it was not tested.
  constexpr std::optional<DomainLayout> domain() const {
    if (requested_external_interrupt == 0) return std::nullopt;
    return DomainLayout{.young_limit = 0,
                        .young_ptr = 1,
                        .young_start = 2,
                        .young_end = 3,
                        .action_pending = 7,
                        .requested_external_interrupt = requested_external_interrupt,
                        .id = id};
  }
};

/// From runtime/caml/domain_state.tbl of each version, whose fields take a word each, and from struct dom_internal in
/// its runtime/domain.c: 5.4 has the domain's thread before the state. What is known of a version was tested with it:
/// stacks in tests/live/stacks_live_test.cpp, what enable/ does in enable_live_test.cpp and
/// enable_workloads_live_test.cpp.
inline constexpr std::array runtime_layouts = std::to_array<RuntimeLayout>({
    {.version = {5, 0},
     .function = "caml_runtime_events_init",
     .id = 35,
     .requested_external_interrupt = 0,
     .young_trigger = 2,
     .current_stack = 4,
     .c_stack = 7,
     .local_roots = 0,
     .state_in_domain = 1},
    {.version = {5, 1},
     .function = "caml_runtime_events_user_register",
     .id = 35,
     .requested_external_interrupt = 31,
     .young_trigger = 4,
     .current_stack = 5,
     .c_stack = 8,
     .local_roots = 19,
     .state_in_domain = 1},
    {.version = {5, 2},
     .function = "caml_ml_runtime_events_start",
     .id = 35,
     .requested_external_interrupt = 0,
     .young_trigger = 4,
     .current_stack = 5,
     .c_stack = 8,
     .local_roots = 0,
     .state_in_domain = 1},
    {.version = {5, 3},
     .function = "caml_ml_runtime_events_path",
     .id = 36,
     .requested_external_interrupt = 32,
     .young_trigger = 4,
     .current_stack = 5,
     .c_stack = 8,
     .local_roots = 20,
     .state_in_domain = 1},
    {.version = {5, 4},
     .function = "caml_domain_terminate",
     .id = 40,
     .requested_external_interrupt = 36,
     .young_trigger = 4,
     .current_stack = 5,
     .c_stack = 8,
     .local_roots = 24,
     .state_in_domain = 2},
    // And later.
    {.version = {5, 5},
     .function = "caml_domain_count",
     .id = 40,
     .requested_external_interrupt = 0,
     .young_trigger = 0,
     .current_stack = 0,
     .c_stack = 0,
     .local_roots = 0,
     .state_in_domain = 0},
});
static_assert(std::ranges::is_sorted(runtime_layouts, {}, &RuntimeLayout::version));

/// Nullptr if the table does not have the version.
constexpr const RuntimeLayout* find_runtime_layout(const OcamlVersion& version) {
  const auto found = std::ranges::find(runtime_layouts, version.series(), &RuntimeLayout::version);
  return found == runtime_layouts.end() ? nullptr : &*found;
}

}  // namespace rtev
