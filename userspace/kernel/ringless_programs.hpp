// SPDX-License-Identifier: MIT
// The BPF programs of --ringless: loaded beside the others, attached to binaries one by one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bpf/records.h"
#include "kernel/kernel_source.hpp"
#include "kernel/uprobe_manager.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

struct RinglessOptions {
  std::uint64_t limit = 100'000;  ///< events a second of one process
  int followed_map_fd = -1;       ///< Programs::followed_map_fd(), to probe only those processes; -1: all
  std::vector<pid_t> pids{};      ///< only these, if any
  bool uprobe_multi = true;       ///< use it where the kernel has it; false: as on older kernels
  AttachUprobes attach = attach_uprobes;
};

/// The programs. Belongs to one thread, except for describe(), probe() and forget(), which any thread may call.
class RinglessPrograms final : public UprobePrograms, public RinglessSource {
 public:
  static Result<RinglessPrograms> load(const RinglessOptions& options);
  RinglessPrograms(RinglessPrograms&&) noexcept;
  RinglessPrograms& operator=(RinglessPrograms&&) noexcept;
  ~RinglessPrograms() override;

  /// Gives the BPF programs what they need to know of a binary.
  Result<void> describe(std::uint32_t binary_id, const rtev_ringless_binary& binary);
  /// Describes a binary and probes it, in all processes or in those of RinglessOptions::pids. All sites, or an error.
  Result<AttachedUprobes> probe(int file, std::uint32_t binary_id, const ProbePlan& plan, std::uint32_t round) override;
  void forget(std::uint32_t binary_id) override;

  int fd() const override;
  void read(const std::function<void(const rtev_probed&)>& consumer) override;
  void arm_wakeup() override;
  void ignore(pid_t tgid, std::uint64_t time_ns) override;
  std::uint64_t dropped() const override;
  std::uint64_t unattributed() const override;

 private:
  struct State;
  explicit RinglessPrograms(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
