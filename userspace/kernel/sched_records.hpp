// SPDX-License-Identifier: MIT
// Scheduler records: their buffers, how many were dropped, and what they are in the stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "bpf/records.h"
#include "kernel/bpf_ring.hpp"
#include "kernel/kernel_source.hpp"
#include "rtev/error.hpp"
#include "stream/records.hpp"

namespace rtev::kernel {

/// How many buffers there are, and their size.
struct SchedBufferPlan {
  std::uint32_t count;         ///< a cpu writes to buffer number cpu % count
  std::uint32_t bytes;         ///< of each, a power of two
  std::uint32_t wakeup_shift;  ///< the reader is woken each time 1 << this more bytes wait: a quarter of a buffer

  bool operator==(const SchedBufferPlan&) const = default;
};

inline constexpr std::uint32_t max_sched_buffers = 64;
inline constexpr std::uint32_t min_sched_buffer_bytes = 64 << 10;
inline constexpr std::uint32_t max_sched_buffer_bytes = 1U << 30;

/// Divides `total_bytes` among the buffers of a host; exceeds it only where buffers would be smaller than
/// min_sched_buffer_bytes.
SchedBufferPlan plan_sched_buffers(std::size_t total_bytes, std::uint32_t cpus);

/// The buffers: one for each cpu, or one for several cpus. Belongs to one thread.
class SchedBuffers {
 public:
  /// No buffers.
  SchedBuffers() = default;
  /// Creates the buffers and puts them into the map of maps that the BPF programs use.
  static Result<SchedBuffers> create(const SchedBufferPlan& plan, int map_of_maps_fd);

  std::uint16_t count() const { return static_cast<std::uint16_t>(buffers_.size()); }
  /// The map of one buffer, readable while records wait.
  int fd(std::uint16_t buffer) const { return buffers_[buffer].map.get(); }

  /// Calls consumer(const rtev_sched&) for what waits in one buffer, at most `max_records` records. False if some were
  /// left.
  template <typename Consumer>
  bool read(std::uint16_t buffer, std::size_t max_records, Consumer&& consumer) {
    return buffers_[buffer].ring.read<rtev_sched>(
        max_records, [&](const rtev_sched& record, std::span<const std::byte>) { consumer(record); });
  }

 private:
  struct Buffer {
    UniqueFd map;
    BpfRing ring;
  };
  std::vector<Buffer> buffers_;
};

/// Counts the records that BPF dropped because a buffer was full, and when. The BPF programs keep counters in shared
/// memory. One thread.
class SchedDropCounters {
 public:
  /// What was dropped since the last call, one entry for each cpu that dropped any. `now_ns` is the current time
  /// (CLOCK_MONOTONIC): everything dropped before it is included.
  std::vector<SchedDrop> take(std::span<rtev_sched_drops> cpus, std::uint64_t now_ns);

  /// Sums of what take() returned.
  std::uint64_t switches() const { return switches_; }
  std::uint64_t wakeups() const { return wakeups_; }

 private:
  struct Taken {
    std::uint64_t switches = 0;
    std::uint64_t wakeups = 0;
  };
  std::vector<Taken> taken_;  ///< by cpu
  std::uint64_t last_call_ns_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t wakeups_ = 0;
};

/// For records of type RTEV_SWITCH.
SchedSwitch to_switch(const rtev_sched& record);
/// For records of type RTEV_WAKEUP.
Wakeup to_wakeup(const rtev_sched& record);
/// For records of type RTEV_USAGE.
ThreadUsage to_usage(const rtev_sched& record);

/// Why a thread left its cpu, from the kernel's task state as in the sched_switch tracepoint.
LeftState left_state(std::uint32_t task_state, bool preempted);

}  // namespace rtev::kernel
