// SPDX-License-Identifier: MIT
// Clocks for the events of a load.
#pragma once

#include <cstdint>

namespace rtev::load {

// For RingWriter::Options::clock, in ns. Times increase within a thread, and when one thread continues after another.

/// CLOCK_MONOTONIC, read for each event.
std::uint64_t exact_time();
/// CLOCK_MONOTONIC, read for every 64th event of a thread, and 1 ns more for each event in between. Never ahead of the
/// clock, because writing an event takes longer than that, and so cheap that the clock does not limit the rate.
std::uint64_t cached_time();

/// Makes the next cached_time() of this thread read the clock, e.g. after a sleep.
void refresh_time();
/// The last time that this thread got.
std::uint64_t last_time();

}  // namespace rtev::load
