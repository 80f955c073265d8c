// SPDX-License-Identifier: MIT
// The runtime phases in which domains synchronise or wait (runtime/domain.c, runtime/minor_gc.c).
#pragma once

#include <cstdint>

#include "rtev/names.hpp"

namespace rtev {

/// Their ids in a family.
struct StwPhases {
  std::uint16_t leader;         ///< "stw_leader": asks the others to stop, then takes part
  std::uint16_t handler;        ///< "stw_handler": takes part
  std::uint16_t start_barrier;  ///< "stw_api_barrier": waits until all are there
  std::uint16_t minor;
  std::uint16_t minor_barrier;   ///< "minor_leave_barrier": waits until all have ended their part of a minor collection
  std::uint16_t condition_wait;  ///< "domain_condition_wait": waits for the program, without the domain's lock

  static const StwPhases& of(Family family) {
    static const StwPhases before_5_3 = find(Family::before_5_3), since_5_3 = find(Family::since_5_3);
    return family == Family::before_5_3 ? before_5_3 : since_5_3;
  }

 private:
  static StwPhases find(Family family) {
    const auto id = [&](std::string_view name) { return static_cast<std::uint16_t>(find_phase(family, name).value()); };
    return {.leader = id("stw_leader"),
            .handler = id("stw_handler"),
            .start_barrier = id("stw_api_barrier"),
            .minor = id("minor"),
            .minor_barrier = id("minor_leave_barrier"),
            .condition_wait = id("domain_condition_wait")};
  }
};

}  // namespace rtev
