// SPDX-License-Identifier: MIT
// The BPF programs that are always loaded: processes, rings, scheduler.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bpf/records.h"
#include "kernel/kernel_source.hpp"
#include "kernel/libbpf.hpp"
#include "kernel/uprobe_manager.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

struct ProgramOptions {
  rtev_sched_mode sched = RTEV_SCHED_OCAML;
  std::size_t sched_buffer_bytes = 16 << 20;  ///< of all scheduler buffers together
  bool follow = false;                        ///< report only processes given to follow() and their descendants
  /// Which rings are saved before they are gone. Nothing: all with `follow` since Linux 6.4, else known ones.
  std::optional<rtev_save_mode> save_rings{};
  bool uprobe_multi = true;  ///< use it where the kernel has it; false: as on older kernels
  AttachUprobes attach = attach_uprobes;
  AttachTracepoints attach_again = attach_tracepoints;  ///< for programs that were detached
};

/// What was lost, over all cpus, by enum rtev_stat: dropped records, and processes that could not be tracked.
using Drops = std::array<std::uint64_t, RTEV_STAT_COUNT>;

/// The loaded BPF programs. Belongs to one thread, except for probe(), forget(), ring_opened(), is_being_changed()
/// and mappings(), which any thread may call, and read_lifecycle(), attach_sched() and detach_sched(), which may have
/// threads of their own.
class Programs final : public SavedRingSource,
                       public TrackedProcesses,
                       public SchedSource,
                       public SchedPrograms,
                       public UprobePrograms {
 public:
  /// Opens and loads; errors name what the host lacks (kernel 6.1, BTF, capabilities) with a hint.
  static Result<Programs> load(const ProgramOptions& options);
  Programs(Programs&&) noexcept;
  Programs& operator=(Programs&&) noexcept;
  ~Programs() override;

  /// Attaches the tracepoint programs: from here on records arrive.
  Result<void> attach();

  /// `tail` holds what follows the record: for RTEV_RING the rest of a struct rtev_ring_record, else nothing. Both are
  /// valid during the call only.
  using LifecycleConsumer = std::function<void(const rtev_lifecycle& record, std::span<const std::byte> tail)>;
  /// A descriptor to poll for POLLIN: readable while records wait, perhaps unfinished ones that cannot be read yet.
  int lifecycle_fd() const;
  /// Calls the consumer for the records that wait, in order, a bounded number of them.
  void read_lifecycle(const LifecycleConsumer& consumer);

  void read_saved(const SavedConsumer& consumer) override;
  bool has_unread_saved() const override;

  Result<void> track(pid_t tgid, const rtev_tracked& tracked) override;
  void untrack(pid_t tgid) override;
  void ring_opened(pid_t tgid, std::uint64_t announced_ns) override;
  void ring_found(pid_t tgid, const rtev_ring& ring) override;
  bool is_latest_ring(pid_t tgid, std::uint64_t announced_ns) const override;
  std::uint64_t announcements() const override;
  bool is_being_changed(int fd, FileUse use) const override;
  void look_at_pages(std::span<PageRange> ranges) override;
  /// See MappingsCheck. RTEV_MAPPINGS_FREE, too, if the descriptor is not open.
  rtev_mappings mappings(int fd) const;
  /// The descriptor of the program that check_mappings() takes.
  int mappings_program() const;
  /// With ProgramOptions::follow: reports this process and its descendants from now on.
  Result<void> follow(pid_t tgid);
  /// The map of followed processes, for other BPF programs to share.
  int followed_map_fd() const;
  /// The map of threads of tracked processes, likewise.
  int threads_map_fd() const;

  int sched_fd() const override;
  bool read_sched(const SchedConsumer& consumer, std::size_t max_records = std::size_t{1} << 16) override;
  std::uint16_t sched_buffers() const override;
  std::uint16_t sched_buffer_of(std::uint32_t cpu) const override;
  std::vector<SchedDrop> take_sched_drops(std::uint64_t now_ns) override;

  Result<void> attach_sched() override;
  void detach_sched() override;

  /// Has the next ring that fills up make wakeup_fd() readable, if nothing else has been asked for. Call it
  /// before each round of take_activity().
  void wake_if_full();
  /// Has the next activity of any process with a ring make wakeup_fd() readable, too. Before a long sleep: call this,
  /// then take_activity() once more.
  void wake_if_active();
  /// A descriptor to poll for POLLIN.
  int wakeup_fd() const;
  /// Notes which processes are on a cpu now, and makes wakeup_fd() unreadable. Call it once before each round of
  /// take_activity().
  void look_at_cpus();
  /// What is known of a ring's process and its ring since the last call for that slot. Slots that are not watched:
  /// active.
  RingActivity take_activity(std::uint32_t slot);
  /// To be called when a ring is read: from now on only later words count as filling it up.
  void begin_read(std::uint32_t slot);

  /// Scheduler records count once take_sched_drops() has returned them.
  Drops drops() const;
  /// By process: what it announced and had dropped. Of processes that announced something lately, a few thousand.
  std::map<pid_t, rtev_record_budget> budgets() const;

  /// Probes functions of OCaml's runtime, for RTEV_PROBE records. Sites that cannot be probed are skipped; an error if
  /// that leaves none.
  Result<AttachedUprobes> probe(int file, std::uint32_t binary_id, const ProbePlan& plan, std::uint32_t round) override;
  bool uses_uprobe_multi() const;

 private:
  struct State;
  explicit Programs(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
