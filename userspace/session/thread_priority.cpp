// SPDX-License-Identifier: MIT
#include "session/thread_priority.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace rtev {
namespace {

/// The first version of struct sched_attr of linux/sched/types.h, which cannot be included beside C++ headers.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint32_t policy_other = 0;
constexpr std::uint64_t reset_on_fork = 1;

}  // namespace

void raise_thread_priority() {
  // A thread with short time slices gets the first one sooner; before Linux 6.12 only the nice value counts.
  SchedulingAttributes attributes{.size = sizeof attributes,
                                  .policy = policy_other,
                                  .flags = reset_on_fork,
                                  .nice = -10,
                                  .priority = 0,
                                  .runtime = 100'000,
                                  .deadline = 0,
                                  .period = 0};
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace rtev
