// SPDX-License-Identifier: MIT
#include "session/live/thread_priority.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace rtev {

void raise_thread_priority(int nice) {
  // The first version of struct sched_attr of linux/sched/types.h, which cannot be included beside C++ headers.
  struct {
    std::uint32_t size = 48;
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 1;  // SCHED_FLAG_RESET_ON_FORK
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    // A thread with short time slices gets the first one sooner; before Linux 6.12 only the nice value counts.
    std::uint64_t runtime = 100'000;
    std::uint64_t deadline = 0;
    std::uint64_t period = 0;
  } attributes;
  static_assert(sizeof attributes == 48);
  attributes.nice = nice;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace rtev
