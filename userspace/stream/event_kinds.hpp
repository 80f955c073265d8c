// SPDX-License-Identifier: MIT
// A set of kinds of events.
#pragma once

#include <bitset>
#include <cstddef>
#include <initializer_list>

#include "rtev/event.hpp"

namespace rtev {

/// By EventKind.
using EventKinds = std::bitset<event_kind_count>;

inline EventKinds kinds_of(std::initializer_list<EventKind> list) {
  EventKinds kinds;
  for (const EventKind kind : list) kinds.set(static_cast<std::size_t>(kind));
  return kinds;
}

}  // namespace rtev
