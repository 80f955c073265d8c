// SPDX-License-Identifier: MIT
// Adds scheduler records of the kernel to the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kernel/kernel_source.hpp"
#include "session/interrupted_threads.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// Stages switches, wakeups and dropped records in the timeline. One thread.
class SchedStager {
 public:
  /// Without `traces`, records of all processes are staged; else those of processes for which it is true.
  using Traces = std::function<bool(std::int32_t pid)>;
  SchedStager(kernel::SchedSource& source, Timeline& timeline, Traces traces)
      : source_(source), timeline_(timeline), traces_(std::move(traces)) {}

  /// Stages the records that wait, a bounded number of them, and what was dropped before `now_ns`.
  void stage(std::uint64_t now_ns);

  /// Where buffers could not be emptied: later records may still come in order.
  std::optional<std::uint64_t> behind_since() const { return behind_since_ns_; }
  /// When the thread that has been waiting longest was interrupted; forgets those before `oldest_ns`.
  std::optional<std::uint64_t> interrupted_since(std::uint64_t oldest_ns) { return interrupted_.since(oldest_ns); }

 private:
  void stage_records();
  void stage_drops(std::uint64_t now_ns);

  kernel::SchedSource& source_;
  Timeline& timeline_;
  Traces traces_;
  InterruptedThreads interrupted_;
  std::optional<std::uint64_t> behind_since_ns_;
};

}  // namespace rtev
