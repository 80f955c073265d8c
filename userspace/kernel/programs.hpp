// SPDX-License-Identifier: MIT
// The BPF programs: load, attach, ask, detach. The only room that knows libbpf.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/unique_fd.hpp"
#include "bpf/records.h"
#include "kernel/sched_drops.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

struct ProgramOptions {
  rtev_sched_mode sched = RTEV_SCHED_OCAML;
  std::size_t sched_buffer_bytes = 16 << 20;  ///< of all scheduler buffers together
  bool follow = false;                        ///< report only processes given to follow() and their descendants
  rtev_drain_mode drain = RTEV_DRAIN_KNOWN;   ///< keep what rings hold that may be gone before they are read
  bool uprobe_multi = true;                   ///< where the kernel has it; false: as if it had not
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

/// The loaded BPF programs. Belongs to one thread, but for attach_probes() and ring_opened(), which any thread may
/// call, and drain_lifecycle(), which may have a thread of its own.
class Programs {
 public:
  /// Opens and loads; errors name what the host lacks (kernel 6.1, BTF, capabilities) with a hint.
  static Result<Programs> load(const ProgramOptions& options);
  Programs(Programs&&) noexcept;
  Programs& operator=(Programs&&) noexcept;
  ~Programs();

  /// Attaches the tracepoint programs: from here on records arrive.
  Result<void> attach();

  /// Readable while lifecycle records wait.
  int lifecycle_fd() const;
  /// Becomes readable when a scheduler buffer is filling up, not for each record.
  int sched_fd() const;

  /// Calls consumer(const rtev_lifecycle&, std::span<const std::byte> tail) for every record that waits, in order. The
  /// tail is empty but for the rest of a struct rtev_birth.
  template <typename Consumer>
  void drain_lifecycle(Consumer&& consumer) {
    drain_lifecycle_records(
        [](void* c, const rtev_lifecycle& r, std::span<const std::byte> tail) {
          (*static_cast<std::remove_reference_t<Consumer>*>(c))(r, tail);
        },
        &consumer);
  }
  /// Calls consumer(std::uint16_t buffer, const rtev_sched&) for what waits, buffer after buffer, at most
  /// `most` records of each. Within a buffer records are nearly in order of time. False if records were left.
  template <typename Consumer>
  bool drain_sched(Consumer&& consumer, std::size_t most = 1 << 16) {
    return drain_sched_records(
        [](void* c, std::uint16_t buffer, const rtev_sched& r) {
          (*static_cast<std::remove_reference_t<Consumer>*>(c))(buffer, r);
        },
        &consumer, most);
  }
  std::uint16_t sched_buffers() const;
  /// The buffer that a cpu's records come through.
  std::uint16_t sched_buffer_of(std::uint32_t cpu) const;
  /// Scheduler records that found no room since the last call: see SchedDropCounters::take().
  std::vector<SchedDrop> take_sched_drops(std::uint64_t now_ns);
  /// Calls consumer(const rtev_drained&, std::span<const std::byte> payload) for all that was kept of rings, in order.
  /// What was kept before the record of a process's end is there when that record is, but perhaps behind what another
  /// process has begun to keep: then awaits_drained() is true afterwards.
  template <typename Consumer>
  void collect_drained(Consumer&& consumer) {
    collect_drained_records(
        [](void* c, const rtev_drained& r, std::span<const std::byte> payload) {
          (*static_cast<std::remove_reference_t<Consumer>*>(c))(r, payload);
        },
        &consumer);
  }

  bool awaits_drained() const;

  /// Tells the kernel side which processes are OCaml's, with what it needs to find their domains.
  Result<void> track(pid_t tgid, const rtev_tracked& tracked);
  void untrack(pid_t tgid);
  /// The ring that the process announced then is open: its end may come. Thread-safe.
  void ring_opened(pid_t tgid, std::uint64_t birth_ns);
  /// A ring that is open was not announced, so it is older than this tracer. What is known of one that was announced
  /// all the same stays.
  void ring_found(pid_t tgid, const rtev_ring& ring);
  /// False if the process announced a ring after that time.
  bool is_latest_ring(pid_t tgid, std::uint64_t birth_ns) const;
  /// With ProgramOptions::follow: from here on the process and its descendants are reported.
  Result<void> follow(pid_t tgid);
  /// The map of those, for other programs to share.
  int followed_map_fd() const;

  /// Takes note of who is on a cpu right now, for ran(). Once before each round of ran(), so that its cost does not
  /// grow with rings times cpus.
  void look_at_cpus();
  /// True if a thread of the process that owns this ring slot entered or left a cpu since the last call, or was on one
  /// at the last look_at_cpus().
  bool ran(std::uint32_t slot);
  /// Asks for an RTEV_WAKE record when a tracked process with a ring runs again. Call before sleeping long, then
  /// look_at_cpus() and check ran() once more.
  void arm_wakeup();

  /// Of scheduler records those that take_sched_drops() told.
  Drops drops() const;

  /// Probes functions of a binary in all processes that run it, now and later. Functions that cannot be probed are left
  /// out; an error if that leaves none. Thread-safe.
  Result<BinaryProbes> attach_probes(int binary_fd, std::uint32_t binary_id, std::span<const ProbeSite> sites);
  bool uses_uprobe_multi() const;

 private:
  struct State;
  explicit Programs(std::unique_ptr<State> state);
  void drain_lifecycle_records(void (*call)(void*, const rtev_lifecycle&, std::span<const std::byte>), void* consumer);
  void collect_drained_records(void (*call)(void*, const rtev_drained&, std::span<const std::byte>), void* consumer);
  bool drain_sched_records(void (*call)(void*, std::uint16_t, const rtev_sched&), void* consumer, std::size_t most);
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
