// SPDX-License-Identifier: MIT
// When the probes of --ringless are attached to a binary and detached from it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/timed_tasks.hpp"
#include "kernel/uprobe_manager.hpp"
#include "processes/process_table.hpp"

namespace rtev {

/// A binary is probed once one of its processes is old enough to have a ring, and has none. A process that makes more
/// events than the limit allows pauses: BPF ignores it for a while. Its probes would cost it as much as before, so
/// those of its binary are detached meanwhile, unless other users run the binary. One thread, except for prepare().
class RinglessProbes {
 public:
  /// A program that has a ring from its start on creates it within this time. It is not probed: the probes would see
  /// that it has a ring and report nothing, but would cost as much.
  static constexpr std::uint64_t ring_timeout_ns = 20'000'000;
  /// A user still runs a binary for so long after the last process: programs that are short may be run again.
  static constexpr std::uint64_t user_timeout_ns = 60'000'000'000;

  /// Runs a task on a background thread, which must end before this object: attaching and detaching of probes waits for
  /// the kernel. A task that returns false is to be run again.
  using RunLater = std::function<void(std::function<bool()>)>;
  /// What UprobeManager needs to leave files alone.
  struct Care {
    MappingsCheck check;
    kernel::UprobeManager::GiveLinks give;
  };
  /// `tasks`: requests attaching and detaching.
  RinglessProbes(kernel::UprobePrograms& programs, const ProcessTable& processes, TimedTasks& tasks, RunLater run_later,
                 Care care = {})
      : probes_(programs, kernel::AttachPolicy::on_request, std::move(care.check), std::move(care.give)),
        processes_(processes),
        run_later_(std::move(run_later)),
        requesting_(tasks, [this](std::uint64_t now_ns) { request(now_ns); }) {}

  /// A binary was inspected. Called on the inspector's thread. False: to be called again.
  bool prepare(int fd, const RuntimeBinary& runtime, kernel::ProbedBinary binary);
  /// A process of the binary is tracked that has no ring so far.
  void consider(std::uint32_t binary) {
    candidates_.insert(binary);
    requesting_.at_once();
  }
  /// A process of the binary ended before it was probed: the next one is to be.
  void attach_for_next(std::uint32_t binary, std::uint32_t user);
  /// A process of the user began a pause.
  void exceeded_limit(std::uint32_t binary, std::uint32_t user) {
    ++too_fast_.try_emplace(binary, TooFast{.user = user}).first->second.processes;
    requesting_.at_once();
  }
  /// A process of the binary ended without a ring.
  void on_end(std::uint32_t binary, std::uint32_t user, std::uint64_t time_ns);

  /// Detaches probes that have not been needed for long.
  void detach_unused(std::uint64_t now_ns);

  /// Probes of a binary were attached: all events after `time_ns` are reported.
  struct Attached {
    std::uint32_t binary;
    std::uint64_t time_ns;
    bool after_gap;  ///< they had been attached before
  };
  /// Those since the last call, in order.
  std::vector<Attached> take_attached();

  /// False if some events at this time were not reported, because probes were being attached or detached.
  bool reports_all(std::uint32_t binary, std::uint64_t time_ns) const;
  bool is_attached(std::uint32_t binary) const;
  /// From the request to detach the probes of a binary for a pause until they are attached again.
  bool is_in_gap(std::uint32_t binary) const { return gaps_.contains(binary); }
  /// How often probes were detached for a pause, plus pauses of single processes.
  std::uint64_t gaps() const { return gap_count_; }

  /// See UprobeManager.
  std::optional<std::uint64_t> attached_since(std::uint32_t binary) const { return probes_.attached_since(binary); }
  std::optional<std::string> failure(std::uint32_t binary) const { return probes_.failure(binary); }

 private:
  static constexpr auto never = std::numeric_limits<std::uint64_t>::max();
  struct Gap {
    std::uint32_t user;  ///< of the program that was too fast
    std::uint64_t attach_again_ns;
    bool requested = false;  ///< that they are attached again
    bool again = false;      ///< the program was too fast again before it was known that they are attached
  };
  struct TooFast {
    std::uint32_t user;
    std::uint64_t processes = 0;
  };
  struct Backoff {
    std::uint64_t pause_ns = 0;
    std::uint64_t attached_since_ns = 0;  ///< `never` while they are detached
  };

  /// The last process of a user that ended.
  struct Ended {
    std::uint32_t user = 0;
    std::uint64_t time_ns = 0;
  };

  void request(std::uint64_t now_ns);
  void attach(std::uint32_t binary);
  void attach_candidates(std::uint64_t now_ns);
  bool others_run(std::uint32_t binary, std::uint32_t user, std::uint64_t now_ns) const;
  void detach_for_a_while(std::uint32_t binary, std::uint32_t user, std::uint64_t now_ns);

  kernel::UprobeManager probes_;
  const ProcessTable& processes_;
  RunLater run_later_;
  std::set<std::uint32_t> candidates_;         ///< binaries that may have to be probed
  std::set<std::uint32_t> wanted_;             ///< binaries to probe with the next requests
  std::map<std::uint32_t, TooFast> too_fast_;  ///< since the last requests, by binary
  TimedTask requesting_;
  std::map<std::uint32_t, Gap> gaps_;
  std::map<std::uint32_t, Backoff> backoffs_;
  /// By binary. Two suffice to know whether any user but a given one ran it lately. They differ; the newer is first.
  std::map<std::uint32_t, std::array<Ended, 2>> ended_;
  std::uint64_t gap_count_ = 0;
};

}  // namespace rtev
