// SPDX-License-Identifier: MIT
// When the probes of --ringless are attached to a binary and detached from it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernel/uprobe_manager.hpp"
#include "processes/process_table.hpp"

namespace rtev {

/// A binary is probed once one of its processes is old enough to have a ring, and has none. If a program makes more
/// events than the limit allows, the probes of its binary are detached for a while. One thread, except for prepare().
class RinglessProbes {
 public:
  /// A program that has a ring from its start on creates it within this time. It is not probed: the probes would see
  /// that it has a ring and report nothing, but would cost as much.
  static constexpr std::uint64_t ring_timeout_ns = 20'000'000;
  /// Probes stay detached for so long after a program was too fast, then twice as long each time it is again.
  static constexpr std::uint64_t min_pause_ns = 1'000'000'000, max_pause_ns = 32'000'000'000;

  /// Runs a task on a background thread, which must end before this object: attaching and detaching of probes waits for
  /// the kernel.
  using RunLater = std::function<void(std::function<void()>)>;
  RinglessProbes(kernel::UprobePrograms& programs, const ProcessTable& processes, RunLater run_later)
      : probes_(programs, kernel::AttachPolicy::on_request), processes_(processes), run_later_(std::move(run_later)) {}

  /// A binary was inspected. Called on the inspector's thread.
  void prepare(int fd, const Binary& binary);
  /// A process of the binary is tracked that has no ring so far.
  void consider(std::uint32_t binary) { candidates_.insert(binary); }
  /// A process of the binary ended before it was probed: the next one is to be.
  void attach_for_next(std::uint32_t binary) { wanted_.insert(binary); }
  /// A program of the binary made more events than the limit allows.
  void exceeded_limit(std::uint32_t binary) { too_fast_.insert(binary); }

  /// Requests attaching and detaching. `now_ns` is CLOCK_MONOTONIC.
  void tick(std::uint64_t now_ns);
  /// When tick() has something to do again, as far as only time decides.
  std::optional<std::uint64_t> next_tick_ns() const;
  /// Detaches probes that have not been needed for long.
  void detach_unused(std::uint64_t now_ns);

  /// Probes of a binary were attached: all events after `time_ns` are reported.
  struct Attached {
    std::uint32_t binary;
    std::uint64_t time_ns;
    bool after_gap;  ///< they had been detached because a program was too fast
  };
  /// Those since the last call, in order.
  std::vector<Attached> take_attached();

  /// False if some events at this time were not reported, because probes were being attached or detached.
  bool reports_all(std::uint32_t binary, std::uint64_t time_ns) const;
  bool is_attached(std::uint32_t binary) const;
  /// From the request to detach the probes of a binary whose program was too fast until they are attached again.
  bool is_in_gap(std::uint32_t binary) const { return gaps_.contains(binary); }
  /// How often there was a gap.
  std::uint64_t gaps() const { return gap_count_; }

  /// See UprobeManager.
  std::optional<std::uint64_t> attached_since(std::uint32_t binary) const { return probes_.attached_since(binary); }
  std::optional<std::string> failure(std::uint32_t binary) const { return probes_.failure(binary); }

 private:
  static constexpr auto never = std::numeric_limits<std::uint64_t>::max();
  struct Gap {
    std::uint64_t attach_again_ns;
    bool requested = false;  ///< that they are attached again
    bool again = false;      ///< the program was too fast again before it was known that they are attached
  };
  struct Backoff {
    std::uint64_t pause_ns = 0;
    std::uint64_t attached_since_ns = 0;  ///< `never` while they are detached
  };

  void attach(std::uint32_t binary);
  void attach_candidates(std::uint64_t now_ns);
  void detach_for_a_while(std::uint32_t binary, std::uint64_t now_ns);

  kernel::UprobeManager probes_;
  const ProcessTable& processes_;
  RunLater run_later_;
  std::set<std::uint32_t> candidates_;  ///< binaries that may have to be probed
  std::set<std::uint32_t> wanted_;      ///< binaries to probe at the next tick
  std::set<std::uint32_t> too_fast_;    ///< binaries to detach at the next tick
  std::uint64_t considered_ns_ = 0;     ///< when the candidates were considered last
  std::map<std::uint32_t, Gap> gaps_;
  std::map<std::uint32_t, Backoff> backoffs_;
  std::uint64_t gap_count_ = 0;
};

}  // namespace rtev
