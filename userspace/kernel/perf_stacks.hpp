// SPDX-License-Identifier: MIT
// Stacks without BPF and without rights: the kernel samples the threads of one's own processes, and copies their
// registers and the memory above their stack pointers (perf_event_open(2)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/unique_fd.hpp"
#include "kernel/stack_source.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

/// Only threads on a CPU are sampled. Of a thread in C code the stack of OCaml is not copied: it is elsewhere. Which
/// domain a thread runs is unknown, but for the main one, which runs domain 0, and whether it holds the domain's lock.
/// One thread.
class PerfStacks final : public StackSource {
 public:
  /// The error says what forbids it, and what would allow it.
  static Result<std::unique_ptr<PerfStacks>> open(std::uint32_t rate_hz);
  ~PerfStacks() override;
  PerfStacks(const PerfStacks&) = delete;
  PerfStacks& operator=(const PerfStacks&) = delete;

  /// True if time in the kernel is sampled, too: kernel.perf_event_paranoid is 1 or less.
  bool sees_kernel_time() const { return sees_kernel_time_; }

  /// Readable when half of a buffer is filled.
  int fd() const override { return filling_.get(); }
  void read_stacks(const StackConsumer& consumer) override;
  std::vector<StackDrop> take_stack_drops(std::uint64_t now_ns) override;
  bool has_slept_since(pid_t, std::uint64_t, std::uint64_t) const override { return false; }
  /// Samples its present threads, and those that they start. Of the target nothing is used. Fails if not all can be.
  Result<void> add_target(pid_t tgid, const rtev_stack_target& target) override;
  void remove_target(pid_t tgid) override { targets_.erase(tgid); }
  void set_sampling(bool) override {}

  /// One record of the kernel's, with its header, as a stack; false if it is none. For tests, too.
  static bool parse(std::span<const std::byte> record, rtev_stack& stack, std::vector<std::byte>& payload);

 private:
  struct Buffer;
  /// By thread: an event for each CPU.
  using Events = std::map<pid_t, std::vector<UniqueFd>>;

  explicit PerfStacks(std::uint64_t period_ns);
  Result<void> open_buffers();
  /// Fails with the error of the kernel in errno.
  UniqueFd open_event(pid_t thread, int cpu) const;
  Result<void> add_thread(pid_t thread, Events& events) const;
  void read(Buffer& buffer, const StackConsumer& consumer);

  std::uint64_t period_ns_;
  bool sees_kernel_time_ = true;
  UniqueFd filling_;  ///< epoll: the buffers
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::map<pid_t, Events> targets_;
  std::uint64_t lost_ = 0, last_read_ns_ = 0;
  std::vector<std::byte> record_, payload_;  ///< in hand, to keep their memory
};

}  // namespace rtev::kernel
