// SPDX-License-Identifier: MIT
#include "kernel/sched_records.hpp"

#include <bpf/bpf.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <utility>

#include "kernel/syscall.hpp"

namespace rtev::kernel {
namespace {

/// More than the time between BPF's reading the clock for a drop and counting it.
constexpr std::uint64_t slack_ns = 500'000;

std::uint64_t load(__u64& shared) {
  return std::atomic_ref{shared}.load(std::memory_order_acquire);
}

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

SchedBufferPlan plan_sched_buffers(std::size_t total_bytes, std::uint32_t cpus) {
  const std::uint32_t count = std::clamp<std::uint32_t>(cpus, 1, max_sched_buffers);
  const std::size_t share =
      std::clamp<std::size_t>(total_bytes / count, min_sched_buffer_bytes, max_sched_buffer_bytes);
  const auto bytes = static_cast<std::uint32_t>(std::bit_floor(share));
  return {.count = count, .bytes = bytes, .wakeup_shift = static_cast<std::uint32_t>(std::bit_width(bytes)) - 3};
}

Result<SchedBuffers> SchedBuffers::create(const SchedBufferPlan& plan, int map_of_maps_fd) {
  SchedBuffers created;
  created.buffers_.reserve(plan.count);
  std::vector<std::uint32_t> indices;
  std::vector<int> fds;
  for (std::uint32_t index = 0; index < plan.count; ++index) {
    UniqueFd map{bpf_map_create(BPF_MAP_TYPE_RINGBUF, "sched", 0, 0, plan.bytes, nullptr)};
    if (!map) return errno_error(errno, "cannot create a scheduler buffer", {}, "try a smaller --buffer");
    auto ring = BpfRing::open(map.get());
    if (!ring) return std::unexpected(std::move(ring.error()));
    indices.push_back(index);
    fds.push_back(map.get());
    created.buffers_.push_back({std::move(map), std::move(*ring)});
  }
  // Each update by itself would wait for a grace period of the kernel.
  std::uint32_t count = plan.count;
  if (bpf_map_update_batch(map_of_maps_fd, indices.data(), fds.data(), &count, nullptr) != 0)
    return errno_error(errno, "cannot pass the scheduler buffers to the BPF programs");
  return created;
}

std::vector<SchedDrop> SchedDropCounters::take(std::span<rtev_sched_drops> cpus, std::uint64_t now_ns) {
  std::vector<SchedDrop> drops;
  taken_.resize(std::max(taken_.size(), cpus.size()));
  // A drop that is counted during take() leaves first_ns of an earlier drop behind: never report earlier than this.
  const std::uint64_t earliest_ns = last_call_ns_ - std::min(last_call_ns_, slack_ns);
  for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
    rtev_sched_drops& shared = cpus[cpu];
    Taken& taken = taken_[cpu];
    // Counts before times: the times then belong to these drops or to later ones.
    const Taken now{.switches = load(shared.switches), .wakeups = load(shared.wakeups)};
    if (now.switches == taken.switches && now.wakeups == taken.wakeups) continue;
    const std::uint64_t last_ns = load(shared.last_ns);
    drops.push_back({.cpu = static_cast<std::uint32_t>(cpu),
                     .switches = now.switches - taken.switches,
                     .wakeups = now.wakeups - taken.wakeups,
                     .first_ns = std::min(std::max(load(shared.first_ns), earliest_ns), last_ns),
                     .last_ns = last_ns});
    taken = now;
    std::atomic_ref{shared.taken}.store(taken.switches + taken.wakeups, std::memory_order_release);
    switches_ += drops.back().switches;
    wakeups_ += drops.back().wakeups;
  }
  last_call_ns_ = now_ns;
  return drops;
}

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
          .syscall = syscall_of(record.syscall),
          .prev = to_thread(record.prev),
          .next = to_thread(record.next)};
}

Wakeup to_wakeup(const rtev_sched& record) {
  return {.cpu = record.cpu, .woken = to_thread(record.next), .by = to_thread(record.prev)};
}

ThreadUsage to_usage(const rtev_sched& record) {
  const auto raw = std::bit_cast<rtev_usage>(record);
  ThreadUsage usage{.pid = static_cast<std::int32_t>(raw.tgid),
                    .role = to_role(raw.role),
                    .delay_count = std::min<std::uint8_t>(raw.delay_count, RTEV_USAGE_DELAYS),
                    .cpu_ns = raw.cpu_ns};
  static_assert(std::size(raw.delays) == usage.delays_ns.size());
  std::ranges::transform(raw.delays, usage.delays_ns.begin(), [](std::uint32_t delay) {
    const std::uint64_t time = delay & ~RTEV_LONG_DELAY;
    return (delay & RTEV_LONG_DELAY) != 0 ? time * RTEV_LONG_DELAY_NS : time;
  });
  return usage;
}

}  // namespace rtev::kernel
