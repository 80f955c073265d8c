// SPDX-License-Identifier: MIT
// What is in the payload of a stack record, and how many stacks were dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bpf/stack_records.h"
#include "kernel/stack_source.hpp"
#include "unwind/stack_copy.hpp"

namespace rtev::kernel {

/// The parts of a payload. They point into it.
struct StackParts {
  std::vector<std::uint64_t> kernel_frames;  ///< addresses of the kernel's code, innermost first
  std::vector<MemoryCopy> copies;
};

/// Splits a payload. Numbers that do not fit the payload end it early.
void split_stack(const rtev_stack& record, std::span<const std::byte> payload, StackParts& parts);

/// Counts the stacks that BPF dropped, and when. The BPF programs keep counters in shared memory. One thread.
class StackDropCounters {
 public:
  using Shared = rtev_stack_drops[RTEV_STACK_KINDS][RTEV_STACK_LOSSES];
  /// What was dropped since the last call. `now_ns` is the current time (CLOCK_MONOTONIC): everything dropped before it
  /// is included.
  std::vector<StackDrop> take(Shared& shared, std::uint64_t now_ns);

 private:
  std::array<std::array<std::uint64_t, RTEV_STACK_LOSSES>, RTEV_STACK_KINDS> taken_{};
  std::uint64_t last_call_ns_ = 0;
};

}  // namespace rtev::kernel
