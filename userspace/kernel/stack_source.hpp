// SPDX-License-Identifier: MIT
// Stacks that the kernel captures, as user space sees them: an interface, so that tests can replay records.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bpf/stack_records.h"
#include "rtev/error.hpp"

namespace rtev::kernel {

/// Stacks of one kind that were dropped for one reason.
struct StackDrop {
  rtev_stack_kind kind;
  rtev_stack_loss loss;
  std::uint64_t count;
  std::uint64_t first_ns;  ///< CLOCK_MONOTONIC: all of them lie in [first_ns, last_ns]
  std::uint64_t last_ns;

  bool operator==(const StackDrop&) const = default;
};

/// Records of stacks, and the processes they are taken of. Belongs to one thread, except for add_target() and
/// remove_target(), which any thread may call.
class StackSource {
 public:
  virtual ~StackSource() = default;

  /// `payload` has record.bytes bytes; valid during the call only. What it holds was written by the process.
  using StackConsumer = std::function<void(const rtev_stack& record, std::span<const std::byte> payload)>;

  /// A descriptor to poll for POLLIN: readable when the buffer is filling up, not for each record.
  virtual int fd() const = 0;
  /// Calls the consumer for the records that wait, nearly in order of time.
  virtual void read_stacks(const StackConsumer& consumer) = 0;
  /// What was dropped since the last call. Pass the current time; call it after read_stacks(). A sleep is among the
  /// dropped if it lasted long enough to be reported, but its stack could not be taken: at the time of its end.
  virtual std::vector<StackDrop> take_stack_drops(std::uint64_t now_ns) = 0;

  /// Whether the thread whose record RTEV_STACK_OFF_CPU has the time `left_ns` has been asleep ever since, and for long
  /// enough to be reported.
  virtual bool has_slept_since(pid_t tid, std::uint64_t left_ns, std::uint64_t now_ns) const = 0;

  /// Takes stacks of a process, until it exits or execs. Replaces what was known of it. Fails when
  /// RTEV_MAX_STACK_TARGETS are known already.
  virtual Result<void> add_target(pid_t tgid, const rtev_stack_target& target) = 0;
  virtual void remove_target(pid_t tgid) = 0;
  /// Whether threads on a CPU are sampled; at first they are not. While no process is a target the timers would only
  /// wake idle CPUs.
  virtual void set_sampling(bool on) = 0;
};

}  // namespace rtev::kernel
