// SPDX-License-Identifier: MIT
#include "kernel/sched_events.hpp"

#include <algorithm>

namespace rtev::kernel {
namespace {

// Bits of task_struct.__state and exit_state, include/linux/sched.h; the same since 4.14.
constexpr std::uint32_t interruptible = 0x1, uninterruptible = 0x2, stopped = 0x4, traced = 0x8,
                        dead = 0x10 | 0x20 | 0x80, no_load = 0x400;

ThreadRole to_role(std::uint8_t role) {
  switch (role) {
    case RTEV_ROLE_MUTATOR:
      return ThreadRole::mutator;
    case RTEV_ROLE_BACKUP:
      return ThreadRole::backup;
    case RTEV_ROLE_TICK:
      return ThreadRole::tick;
    default:
      return ThreadRole::unknown;
  }
}

Thread to_thread(const rtev_thread& thread) {
  Thread result{.pid = static_cast<std::int32_t>(thread.tgid),
                .tid = static_cast<std::int32_t>(thread.tid),
                .domain = thread.domain,
                .priority = thread.prio,
                .role = to_role(thread.role),
                .tracked = (thread.flags & RTEV_TRACKED_THREAD) != 0,
                .holds_lock = (thread.flags & RTEV_HOLDS_LOCK) != 0,
                .comm_bytes = {}};
  static_assert(sizeof thread.comm == result.comm_bytes.size());
  std::ranges::copy(thread.comm, result.comm_bytes.begin());
  return result;
}

}  // namespace

LeftState left_state(std::uint32_t task_state, bool preempted) {
  // A runnable thread was preempted, either in the kernel (`preempted`) or on its return to user space.
  if (preempted || (task_state & 0xff) == 0) return LeftState::preempted;
  if ((task_state & dead) != 0) return LeftState::dead;
  if ((task_state & traced) != 0) return LeftState::traced;
  if ((task_state & stopped) != 0) return LeftState::stopped;
  if ((task_state & interruptible) != 0) return LeftState::sleeping;
  if ((task_state & uninterruptible) != 0)
    return (task_state & no_load) != 0 ? LeftState::idle : LeftState::uninterruptible;
  return LeftState::other;
}

SchedSwitch to_switch(const rtev_sched& record) {
  return {.cpu = record.cpu,
          .state = left_state(record.state, record.preempted != 0),
          .prev = to_thread(record.prev),
          .next = to_thread(record.next)};
}

Wakeup to_wakeup(const rtev_sched& record) {
  return {.cpu = record.cpu, .woken = to_thread(record.next), .by = to_thread(record.prev)};
}

}  // namespace rtev::kernel
