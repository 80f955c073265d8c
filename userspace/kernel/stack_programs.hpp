// SPDX-License-Identifier: MIT
// The BPF programs that take stacks: loaded beside the others, where stacks are wanted.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpf/stack_records.h"
#include "kernel/stack_source.hpp"
#include "kernel/uprobe_manager.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

struct StackOptions {
  std::uint32_t rate_hz = 99;              ///< samples a second of each cpu; 0: none
  bool off_cpu = false;                    ///< stacks of threads that go to sleep, and when they are back
  std::uint64_t min_sleep_ns = 1'000'000;  ///< shorter sleeps are not reported
  bool allocations = false;                ///< where minor heaps are used up, in binaries given to probe()
  bool kernel_frames = true;               ///< of samples in the kernel
  bool sleep_kernel_frames = false;        ///< of sleeps: they cost more than all the rest
  std::uint32_t stack_bytes = 24 << 10;    ///< copied of the stacks of one thread, at the most
  std::size_t buffer_bytes = 8 << 20;      ///< rounded up to a power of two
  std::uint32_t off_cpu_limit = 1'000;     ///< stacks a second of one process, of sleeps too short to be reported
  std::uint32_t allocation_limit = 2'000;  ///< likewise, where it allocates
  std::uint32_t total_limit = 10'000;      ///< each, of all processes
  int threads_map_fd = -1;                 ///< Programs::threads_map_fd(), for domains and roles; -1: without roles
  bool uprobe_multi = true;                ///< use it where the kernel has it; false: as on older kernels
  AttachUprobes attach = attach_uprobes;
};

/// The programs. Belongs to one thread, except for probe(), add_target() and remove_target(), which any thread may
/// call.
class StackPrograms final : public UprobePrograms, public StackSource {
 public:
  /// Loads them and opens a timer for each cpu that is online.
  static Result<StackPrograms> load(const StackOptions& options);
  StackPrograms(StackPrograms&&) noexcept;
  StackPrograms& operator=(StackPrograms&&) noexcept;
  /// Detaches them.
  ~StackPrograms() override;

  /// From here on records arrive, of processes that are targets; samples of threads on a CPU after set_sampling().
  Result<void> attach();

  /// Probes caml_alloc_small_dispatch, the only site of the plan. Nothing is probed without StackOptions::allocations.
  Result<AttachedUprobes> probe(int file, std::uint32_t binary_id, const ProbePlan& plan, std::uint32_t round) override;

  int fd() const override;
  void read_stacks(const StackConsumer& consumer) override;
  std::vector<StackDrop> take_stack_drops(std::uint64_t now_ns) override;
  bool has_slept_since(pid_t tid, std::uint64_t left_ns, std::uint64_t now_ns) const override;
  Result<void> add_target(pid_t tgid, const rtev_stack_target& target) override;
  void remove_target(pid_t tgid) override;
  void set_sampling(bool on) override;

 private:
  struct State;
  explicit StackPrograms(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
