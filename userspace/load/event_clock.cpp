// SPDX-License-Identifier: MIT
#include "load/event_clock.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace rtev::load {
namespace {

constexpr unsigned events_per_reading = 64;

thread_local std::uint64_t last = 0;
thread_local unsigned left = 0;  ///< events until the clock is read again

}  // namespace

std::uint64_t exact_time() {
  return last = monotonic_ns();
}

std::uint64_t cached_time() {
  if (left == 0) {
    left = events_per_reading;
    last = std::max(last, monotonic_ns());
  } else {
    ++last;
  }
  --left;
  return last;
}

void refresh_time() {
  left = 0;
}

std::uint64_t last_time() {
  return last;
}

}  // namespace rtev::load
