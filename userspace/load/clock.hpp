// SPDX-License-Identifier: MIT
// The clocks that events of a load are dated by.
#pragma once

#include <cstdint>

namespace rtev::load {

/// For RingWriter::Options::clock. Both go forward only within a thread, and where one thread takes over from another.
/// CLOCK_MONOTONIC, read for each event.
std::uint64_t exact_time();
/// Read for every 64th event of a thread, a nanosecond more for each one in between: never ahead of the clock, since no
/// event is written in less, and so cheap that the clock does not bound the rate.
std::uint64_t cached_time();

/// The next cached_time() of this thread reads the clock: for use after the thread slept.
void refresh_time();
/// What this thread's last event was dated.
std::uint64_t last_time();

}  // namespace rtev::load
