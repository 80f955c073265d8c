// SPDX-License-Identifier: MIT
#include "kernel/stack_records.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace rtev::kernel {
namespace {

/// More than the time between BPF's reading the clock for a drop and counting it.
constexpr std::uint64_t stack_slack_ns = 500'000;

std::uint64_t load_shared(__u64& shared) {
  return std::atomic_ref{shared}.load(std::memory_order_acquire);
}

}  // namespace

void split_stack(const rtev_stack& record, std::span<const std::byte> payload, StackParts& parts) {
  parts.kernel_frames.clear();
  parts.copies.clear();
  const std::size_t frames = std::min<std::size_t>(record.kernel_frames, payload.size() / sizeof(std::uint64_t));
  parts.kernel_frames.resize(frames);
  if (frames > 0) std::memcpy(parts.kernel_frames.data(), payload.data(), frames * sizeof(std::uint64_t));
  payload = payload.subspan(frames * sizeof(std::uint64_t));
  while (parts.copies.size() < record.copies && payload.size() >= sizeof(rtev_stack_copy)) {
    rtev_stack_copy copy;
    std::memcpy(&copy, payload.data(), sizeof copy);
    payload = payload.subspan(sizeof copy);
    if (copy.bytes > payload.size()) return;
    parts.copies.push_back({.address = copy.address, .bytes = payload.first(copy.bytes)});
    payload = payload.subspan(copy.bytes);
  }
}

std::vector<StackDrop> StackDropCounters::take(Shared& shared, std::uint64_t now_ns) {
  std::vector<StackDrop> drops;
  // A drop that is counted during take() leaves first_ns of an earlier drop behind: never report earlier than this.
  const std::uint64_t earliest_ns = last_call_ns_ - std::min(last_call_ns_, stack_slack_ns);
  for (std::uint32_t kind = 0; kind < RTEV_STACK_KINDS; ++kind) {
    for (std::uint32_t loss = 0; loss < RTEV_STACK_LOSSES; ++loss) {
      rtev_stack_drops& counted = shared[kind][loss];
      std::uint64_t& taken = taken_[kind][loss];
      // Counts before times: the times then belong to these drops or to later ones.
      const std::uint64_t count = load_shared(counted.count);
      if (count == taken) continue;
      const std::uint64_t last_ns = load_shared(counted.last_ns);
      drops.push_back({.kind = static_cast<rtev_stack_kind>(kind),
                       .loss = static_cast<rtev_stack_loss>(loss),
                       .count = count - taken,
                       .first_ns = std::min(std::max(load_shared(counted.first_ns), earliest_ns), last_ns),
                       .last_ns = last_ns});
      taken = count;
      std::atomic_ref{counted.taken}.store(count, std::memory_order_release);
    }
  }
  last_call_ns_ = now_ns;
  return drops;
}

}  // namespace rtev::kernel
