// SPDX-License-Identifier: MIT
#pragma once

#include <time.h>
#include <unistd.h>

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

/// CLOCK_BOOTTIME in the unit of start times of processes (field 22 of /proc/PID/stat).
inline std::uint64_t boot_ticks() {
  return clock_ns(CLOCK_BOOTTIME) / (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace rtev
