// SPDX-License-Identifier: MIT
// What modules above kernel/ see of the BPF programs, as narrow interfaces. Tests implement them to replay recorded
// sequences of records without libbpf or root; kernel::Programs and kernel::RinglessPrograms implement them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/change_check.hpp"
#include "base/page_check.hpp"
#include "bpf/records.h"
#include "rtev/error.hpp"

namespace rtev::kernel {

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

/// The processes and rings that the BPF programs know.
class TrackedProcesses {
 public:
  virtual ~TrackedProcesses() = default;

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
  /// Rings announced so far, by all processes: while this is the same, so are the answers of is_latest_ring().
  virtual std::uint64_t announcements() const = 0;

  /// See ChangeCheck. False, too, if the descriptor is not open. Takes about a microsecond. Thread-safe.
  virtual bool is_being_changed(int fd, FileUse use) const = 0;
  /// See PageCheck. Takes about a microsecond for pages that are ready. One thread at a time.
  virtual void look_at_pages(std::span<PageRange> ranges) = 0;
};

/// Whether a ring has to be read.
struct RingActivity {
  bool watched = true;         ///< BPF sees when the process runs: else it may have run
  bool ran = false;            ///< a thread of the process was on a cpu: else the ring has no new events
  bool checked = false;        ///< BPF looked at the indices of the domains that ran
  bool checked_first = false;  ///< at those of the first RTEV_FIRST_DOMAINS, of which it may be that others ran
  bool fills_up = false;       ///< more than one part of a domain's ring was filled since the ring was read
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
  /// after read_sched(), so that drops are known before records that follow them are delivered.
  virtual std::vector<SchedDrop> take_sched_drops(std::uint64_t now_ns) = 0;
};

/// The BPF programs on events of the scheduler: switches, wakeups, and timers. They cost each switch of the host some
/// time. One thread at a time.
class SchedPrograms {
 public:
  virtual ~SchedPrograms() = default;

  /// Error::code EINPROGRESS: to be called again, also if they need not be attached any more.
  virtual Result<void> attach_sched() = 0;
  /// Waits for the kernel. After that none of them runs any more.
  virtual void detach_sched() = 0;
};

/// Records of the probes of --ringless. Belongs to one thread.
class RinglessSource {
 public:
  virtual ~RinglessSource() = default;

  /// A descriptor to poll for POLLIN: readable when the buffer is filling up, when a process exceeded its limit, and
  /// for the first event after arm_wakeup().
  virtual int fd() const = 0;
  /// Calls the consumer for the records that wait: in order for each thread, nearly so over all.
  virtual void read(const std::function<void(const rtev_probed&)>& consumer) = 0;
  /// Makes the next event wake the reader. Before a long sleep: call this, then read() once more.
  virtual void arm_wakeup() = 0;
  /// Ignores the process that made an event at this time, until it execs. Nothing happens if it has done so or ended.
  virtual void ignore(pid_t tgid, std::uint64_t time_ns) = 0;
  /// Events that found no room in the buffer.
  virtual std::uint64_t dropped() const = 0;
  /// Events whose domain is unknown, or beyond RTEV_MAX_RINGLESS_PROCESSES processes.
  virtual std::uint64_t unattributed() const = 0;
};

}  // namespace rtev::kernel
