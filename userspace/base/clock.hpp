// SPDX-License-Identifier: MIT
#pragma once

#include <time.h>

#include <cstdint>
#include <limits>

namespace rtev {

/// Later than every time of a clock.
constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// The clock of all events: OCaml's runtime and bpf_ktime_get_ns() use it, too.
inline std::uint64_t monotonic_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

/// CPU time that this thread has used.
inline std::uint64_t thread_cpu_ns() {
  return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/// The unit of start times of processes (field 22 of /proc/PID/stat), whatever the kernel's own tick is. The kernel
/// rounds them down.
inline constexpr std::uint64_t ns_per_tick = 10'000'000;

/// CLOCK_BOOTTIME in this unit.
inline std::uint64_t boot_ticks() {
  return clock_ns(CLOCK_BOOTTIME) / ns_per_tick;
}

}  // namespace rtev
