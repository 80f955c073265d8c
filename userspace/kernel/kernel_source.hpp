// SPDX-License-Identifier: MIT
// What modules above kernel/ see of the BPF programs, as narrow interfaces. Tests implement them to replay recorded
// sequences of records without libbpf or root; kernel::Programs implements all of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bpf/records.h"
#include "rtev/error.hpp"

namespace rtev::kernel {

/// Lifecycle records: exec, fork, exit, announced rings, entered runtime functions. Belongs to one thread, which need
/// not be the one of the other interfaces.
class LifecycleSource {
 public:
  virtual ~LifecycleSource() = default;

  /// `tail` holds what follows the record: for RTEV_RING the rest of a struct rtev_ring_record, else nothing. Both are
  /// valid during the call only.
  using LifecycleConsumer = std::function<void(const rtev_lifecycle& record, std::span<const std::byte> tail)>;

  /// A descriptor to poll for POLLIN: readable while records wait, perhaps unfinished ones that cannot be read yet.
  virtual int lifecycle_fd() const = 0;
  /// Calls the consumer for the records that wait, in order, a bounded number of them.
  virtual void read_lifecycle(const LifecycleConsumer& consumer) = 0;
};

/// What BPF saved of rings before they were gone. Belongs to one thread.
class SavedRingSource {
 public:
  virtual ~SavedRingSource() = default;

  /// `payload` has record.bytes bytes; valid during the call only.
  using SavedConsumer = std::function<void(const rtev_saved& record, std::span<const std::byte> payload)>;

  /// Calls the consumer for all records that wait, in order. What was saved before a process exits or execs has been
  /// written when that lifecycle record is read, but possibly behind an unfinished record of another process, where it
  /// cannot be read yet: then has_unread_saved() is true afterwards.
  virtual void read_saved(const SavedConsumer& consumer) = 0;
  virtual bool has_unread_saved() const = 0;
};

/// Tells the BPF programs which processes and rings there are.
class KernelControl {
 public:
  virtual ~KernelControl() = default;

  /// Watches an OCaml process: its threads' switches and its exit are reported until it exits or execs. Fails, and is
  /// counted as RTEV_STAT_UNTRACKED, when RTEV_MAX_TRACKED are tracked already.
  virtual Result<void> track(pid_t tgid, const rtev_tracked& tracked) = 0;
  /// Stops that, and forgets the ring of the process.
  virtual void untrack(pid_t tgid) = 0;

  /// The ring that the process announced at this time (rtev_lifecycle::time_ns) is open, so BPF need not save it when
  /// its runtime unmaps it. Thread-safe.
  virtual void ring_opened(pid_t tgid, std::uint64_t announced_ns) = 0;
  /// A ring was opened without having been announced: it is older than the tracer, or its record was dropped. Ignored
  /// if BPF knows a ring of the process.
  virtual void ring_found(pid_t tgid, const rtev_ring& ring) = 0;
  /// False if the process announced another ring after this time.
  virtual bool is_latest_ring(pid_t tgid, std::uint64_t announced_ns) const = 0;

  /// With ProgramOptions::follow: reports this process and its descendants from now on.
  virtual Result<void> follow(pid_t tgid) = 0;
};

/// Scheduler records of one cpu that were dropped: no room in its buffer.
struct SchedDrop {
  std::uint32_t cpu;
  std::uint64_t switches;
  std::uint64_t wakeups;
  std::uint64_t first_ns;  ///< CLOCK_MONOTONIC: all dropped records lie in [first_ns, last_ns]
  std::uint64_t last_ns;

  bool operator==(const SchedDrop&) const = default;
};

/// Scheduler records: switches and wakeups. Belongs to one thread.
class SchedSource {
 public:
  virtual ~SchedSource() = default;

  using SchedConsumer = std::function<void(std::uint16_t buffer, const rtev_sched& record)>;

  /// A descriptor to poll for POLLIN: readable when a buffer is filling up, not for each record.
  virtual int sched_fd() const = 0;
  /// Calls the consumer for what waits, buffer after buffer, at most `max_records` of each. Within a buffer records are
  /// nearly in order of time. False if records were left.
  virtual bool read_sched(const SchedConsumer& consumer, std::size_t max_records) = 0;
  /// Number of buffers, 0 with RTEV_SCHED_OFF, and the one that the records of a cpu come through.
  virtual std::uint16_t sched_buffers() const = 0;
  virtual std::uint16_t sched_buffer_of(std::uint32_t cpu) const = 0;
  /// What was dropped since the last call, one entry for each cpu that dropped any. Pass the current time; call it
  /// after read_sched(), so that drops are known before records that follow them are released.
  virtual std::vector<SchedDrop> take_sched_drops(std::uint64_t now_ns) = 0;
};

/// Which processes ran, by the slots of their ring files: a ring whose process did not run has no new events. Belongs
/// to one thread.
class ActivitySource {
 public:
  virtual ~ActivitySource() = default;

  /// Notes which processes are on a cpu now. Call it once before each round of ran().
  virtual void look_at_cpus() = 0;
  /// True if a thread of the process that owns the slot entered or left a cpu since the last call for that slot, or was
  /// on a cpu at the last look_at_cpus(). True for slots that are not watched.
  virtual bool ran(std::uint32_t slot) = 0;
  /// Requests one RTEV_WAKE record for the next time that a tracked process with a ring runs. Before a long sleep: call
  /// this, then look_at_cpus() and ran() once more.
  virtual void arm_wakeup() = 0;
};

/// All of them.
class KernelSource : public LifecycleSource,
                     public SavedRingSource,
                     public KernelControl,
                     public SchedSource,
                     public ActivitySource {};

}  // namespace rtev::kernel
