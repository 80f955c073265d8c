// SPDX-License-Identifier: MIT
// One run of the tracer: kernel records and rings in, one ordered stream to a sink out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "kernel/programs.hpp"
#include "kernel/uprobe_manager.hpp"
#include "processes/discovery.hpp"
#include "processes/saved_rings.hpp"
#include "rtev/error.hpp"
#include "session/interrupted_threads.hpp"
#include "session/ring_poller.hpp"
#include "session/ringless.hpp"
#include "session/stop_signal.hpp"
#include "stream/sink.hpp"
#include "stream/timeline.hpp"

namespace rtev {

struct LiveOptions {
  DiscoveryOptions discovery;
  kernel::ProgramOptions programs;
  /// Trace programs without a ring, too; who is to be traced is taken from the options above.
  std::optional<kernel::RinglessOptions> ringless{};
  std::optional<std::chrono::nanoseconds> duration;
  std::vector<std::string> command_line;  ///< for the header
};

/// Reads, merges and hands out on the thread that calls run(); the lookout and the inspector have threads of their own.
class LiveSession : private DiscoveryListener {
 public:
  /// Loads and attaches the BPF programs, gives the sink its header and looks at what runs already.
  static Result<std::unique_ptr<LiveSession>> start(const LiveOptions& options, Sink& sink, const Output& output,
                                                    StopSignal& stop);
  ~LiveSession() override;

  /// With DiscoveryOptions::only_followed: follows this process and its descendants.
  Result<void> follow(std::int32_t pid) { return programs_.follow(pid); }

  /// Ways to end besides the duration and an output that fails.
  struct Until {
    int readable_fd = -1;  ///< end when this becomes readable
    /// Called for each signal that StopSignal hands out; without it the first one ends the session.
    std::function<void(int)> on_signal{};
  };
  /// Runs, then drains what is there, flushes and gives the sink its summary.
  RunSummary run(const Until& until);

  const Registry& registry() const { return registry_; }
  /// Binaries whose functions are not (all) probed, so that pauses and resumes of their programs may go unseen.
  const kernel::UprobeManager& probes() const { return probes_; }
  /// See Discovery.
  std::uint64_t aborted_without_ring() const { return discovery_.aborted_without_ring(); }
  /// With LiveOptions::ringless; else null.
  const Ringless* ringless() const { return ringless_.get(); }

 private:
  LiveSession(const LiveOptions& options, Sink& sink, const Output& output, StopSignal& stop, kernel::Programs programs,
              std::optional<kernel::RinglessPrograms> ringless);

  void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) override;
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override;
  void on_announced(std::int32_t pid, std::uint64_t birth_ns) override;
  bool is_latest_ring(std::int32_t pid, std::uint64_t birth_ns) override;
  void on_found(std::int32_t pid, const rtev_ring& ring) override;
  void on_image_end(ProcessIndex process, const std::vector<std::uint32_t>& slots, std::uint64_t birth_ns,
                    std::uint64_t time_ns, bool by_exec) override;
  void on_track(std::int32_t pid, const rtev_tracked& tracked) override;
  void on_untrack(std::int32_t pid) override;
  std::optional<DrainedFile> take_drained(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) override;

  void settle();
  bool should_end(const Until& until);
  bool pids_ended(std::uint64_t now_ns);
  void tick();
  void take_sightings();
  void take_sched();
  void collect_drained();
  void take_sched_drops();
  void stage_ring_events(const Batch& batch);
  std::uint64_t slack() const;
  std::uint64_t watermark(std::uint64_t now_ns);
  void release(std::uint64_t watermark);
  void retire(std::uint64_t watermark);
  void sleep();
  void scan(std::uint64_t now_ns);
  void note_ring_stop(const Batch& batch);
  RunSummary finish();

  /// An image that ended, kept until its last event is out.
  struct Retiree {
    std::uint64_t time_ns;
    ProcessIndex process;
    std::vector<std::uint32_t> slots;
  };

  LiveOptions options_;
  Sink& sink_;
  const Output& output_;
  StopSignal& stop_;
  std::uint64_t start_ns_;
  Registry registry_;
  Timeline timeline_;
  kernel::Programs programs_;
  kernel::UprobeManager probes_;
  std::unique_ptr<Ringless> ringless_;  ///< null without LiveOptions::ringless
  BinaryCache cache_;
  Inspector inspector_;
  RingPoller rings_;
  Discovery discovery_;
  DrainedRings drained_;
  Lookout lookout_;
  InterruptedThreads interrupted_;
  UniqueFd epoll_;
  bool is_filtered_;                   ///< only some processes were asked for
  std::set<std::uint32_t> undecided_;  ///< slots whose decode family is not known yet
  std::vector<Retiree> retirees_;
  RunSummary summary_;
  bool any_ran_ = true;
  bool armed_ = false;  ///< the kernel side wakes the session when a process runs
  std::uint64_t sched_behind_since_ns_ = 0;
  std::uint64_t last_tick_ns_ = 0;
  std::uint64_t last_flush_ns_ = 0;
  std::uint64_t last_scan_ns_ = 0;
  std::uint64_t last_pid_check_ns_ = 0;
};

}  // namespace rtev
