// SPDX-License-Identifier: MIT
// The BPF programs: load, attach, ask, detach. The only room that knows libbpf.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "bpf/records.h"
#include "kernel/kernel_source.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

struct ProgramOptions {
  rtev_sched_mode sched = RTEV_SCHED_OCAML;
  std::size_t sched_buffer_bytes = 16 << 20;    ///< of all scheduler buffers together
  bool follow = false;                          ///< report only processes given to follow() and their descendants
  rtev_save_mode save_rings = RTEV_SAVE_KNOWN;  ///< which rings BPF saves before they are gone
  bool uprobe_multi = true;                     ///< where the kernel has it; false: as if it had not
};

/// Where to probe, in one binary.
struct ProbeSite {
  rtev_probe function;
  std::uint64_t file_offset;
};

/// The uprobes in one binary. Destroying it detaches, which takes up to a second on some kernels: see
/// detach_in_parallel().
class BinaryProbes {
 public:
  BinaryProbes(BinaryProbes&&) noexcept;
  BinaryProbes& operator=(BinaryProbes&&) noexcept;
  ~BinaryProbes();

  /// Sites that begin with an instruction that cannot be probed.
  std::size_t skipped() const;

 private:
  friend class Programs;
  friend void detach_in_parallel(std::vector<BinaryProbes> probes);
  BinaryProbes();
  struct State;
  std::unique_ptr<State> state_;
};

/// Detaches with one thread per link, since the kernel waits for a grace period for each and the waits overlap.
void detach_in_parallel(std::vector<BinaryProbes> probes);

/// What was lost, all cpus together, by enum rtev_stat: records that found no room, processes that could not be
/// tracked.
using Drops = std::array<std::uint64_t, RTEV_STAT_COUNT>;

/// The loaded BPF programs. Belongs to one thread, except for attach_probes() and ring_opened(), which any thread may
/// call, and read_lifecycle(), which may have a thread of its own.
class Programs final : public KernelSource {
 public:
  /// Opens and loads; errors name what the host lacks (kernel 6.1, BTF, capabilities) with a hint.
  static Result<Programs> load(const ProgramOptions& options);
  Programs(Programs&&) noexcept;
  Programs& operator=(Programs&&) noexcept;
  ~Programs() override;

  /// Attaches the tracepoint programs: from here on records arrive.
  Result<void> attach();

  int lifecycle_fd() const override;
  void read_lifecycle(const LifecycleConsumer& consumer) override;

  void read_saved(const SavedConsumer& consumer) override;
  bool has_unread_saved() const override;

  Result<void> track(pid_t tgid, const rtev_tracked& tracked) override;
  void untrack(pid_t tgid) override;
  void ring_opened(pid_t tgid, std::uint64_t announced_ns) override;
  void ring_found(pid_t tgid, const rtev_ring& ring) override;
  bool is_latest_ring(pid_t tgid, std::uint64_t announced_ns) const override;
  Result<void> follow(pid_t tgid) override;
  /// The map of followed processes, for other BPF programs to share.
  int followed_map_fd() const;

  int sched_fd() const override;
  bool read_sched(const SchedConsumer& consumer, std::size_t max_records = std::size_t{1} << 16) override;
  std::uint16_t sched_buffers() const override;
  std::uint16_t sched_buffer_of(std::uint32_t cpu) const override;
  std::vector<SchedDrop> take_sched_drops(std::uint64_t now_ns) override;

  void look_at_cpus() override;
  bool ran(std::uint32_t slot) override;
  void arm_wakeup() override;

  /// Scheduler records count once take_sched_drops() has returned them.
  Drops drops() const;

  /// Probes functions of a binary in all processes that run it, now and later. Functions that cannot be probed are left
  /// out; an error if that leaves none. Thread-safe.
  Result<BinaryProbes> attach_probes(int binary_fd, std::uint32_t binary_id, std::span<const ProbeSite> sites);
  bool uses_uprobe_multi() const;

 private:
  struct State;
  explicit Programs(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
