// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Of a run that goes on: has its times of day follow the clock of now. That may have been set since the run began, and
/// CLOCK_MONOTONIC stands still while the host is suspended.
inline void follow_clock(RunHeader& run) {
  if (run.start_realtime_ns != 0) run.start_realtime_ns = clock_ns(CLOCK_REALTIME) - (monotonic_ns() - run.start_ns);
}

}  // namespace rtev
