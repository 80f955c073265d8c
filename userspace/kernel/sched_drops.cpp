// SPDX-License-Identifier: MIT
#include "kernel/sched_drops.hpp"

#include <algorithm>
#include <atomic>

namespace rtev::kernel {
namespace {

/// More than the time between BPF's reading the clock for a drop and counting it.
constexpr std::uint64_t slack_ns = 500'000;

std::uint64_t load(__u64& shared) {
  return std::atomic_ref{shared}.load(std::memory_order_acquire);
}

}  // namespace

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

}  // namespace rtev::kernel
