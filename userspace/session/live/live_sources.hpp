// SPDX-License-Identifier: MIT
// All that a live session reads: lifecycle records, rings, ring-less probes, scheduler records and /proc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "enable/enabler.hpp"
#include "helper/helper_process.hpp"
#include "helper/process_queries.hpp"
#include "inspect/enabled_watch.hpp"
#include "inspect/inspector.hpp"
#include "kernel/programs.hpp"
#include "kernel/ringless_programs.hpp"
#include "kernel/stack_programs.hpp"
#include "kernel/uprobe_manager.hpp"
#include "processes/discovery.hpp"
#include "processes/discovery_context.hpp"
#include "processes/lifecycle_reader.hpp"
#include "session/live/enabling.hpp"
#include "session/live/kernel_link.hpp"
#include "session/live/ring_poller.hpp"
#include "session/live/ring_stager.hpp"
#include "session/live/ringless.hpp"
#include "session/live/sched_attachment.hpp"
#include "session/live/sched_stager.hpp"
#include "session/live/sources.hpp"
#include "session/live/stacks/stack_stager.hpp"
#include "session/live/thread_priority.hpp"

namespace rtev {

/// What a live session traces with BPF.
struct LiveOptions : SessionOptions {
  kernel::ProgramOptions programs;
  /// Trace programs without a ring, too. Which processes, and how uprobes are attached, is taken from the options
  /// above.
  std::optional<kernel::RinglessOptions> ringless{};
  /// Take stacks of threads, too. The threads map and how uprobes are attached are taken from the options above.
  std::optional<kernel::StackOptions> stacks{};
  /// Switches the events of programs on; must outlive the session. Null: they are left as they are.
  enable::Enabler* enabler = nullptr;
  int priority = default_priority;  ///< nice value of the thread that runs the session
};

/// The BPF programs of a session, attached.
struct AttachedPrograms {
  kernel::Programs programs;
  std::optional<kernel::RinglessPrograms> ringless;  ///< with LiveOptions::ringless
  std::optional<kernel::StackPrograms> stacks;       ///< with LiveOptions::stacks
  KernelSymbols kernel_symbols;                      ///< likewise

  /// Raises the priority of the calling thread, which is to run the session.
  static Result<AttachedPrograms> load(const LiveOptions& options);
};

/// LifecycleReader and Inspector have threads of their own.
class LiveSources final : public Sources, private ProcessEvents {
 public:
  LiveSources(const LiveOptions& options, const StreamParts& stream, AttachedPrograms attached,
              const helper::HelperProcess& helper);
  ~LiveSources() override;

  void begin_scan(std::uint64_t now_ns) override;
  void scan_some() override;
  Collected collect() override;
  Watermark::Holds holds(std::uint64_t read_until_ns) override;
  void drain(Rest rest) override;
  void update_registry() override { rings_.update(stream_.registry); }
  void add_figures(RunSummary& summary) const override;
  bool is_inspecting() const override {
    return discovery_.is_scanning() || !inspector_.idle() || processes_.is_inspecting();
  }
  std::vector<int> event_fds() const override;
  void await_inspected(int timeout_ms) const override;
  bool any_runs() const override { return any_runs_; }
  bool has_news() const override { return has_news_; }
  bool is_behind() const override { return sched_.behind_since().has_value(); }
  void wake_if_active() override;

  /// With ProcessFilter::only_followed: follows this process and its descendants.
  Result<void> follow(std::int32_t pid) { return programs_.follow(pid); }
  const kernel::UprobeManager& probes() const { return probes_; }
  const Discovery& discovery() const { return discovery_; }
  const Ringless* ringless() const { return ringless_.get(); }
  const Enabling* enabling() const { return enabling_ ? &*enabling_ : nullptr; }

 private:
  void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) override;
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override;
  void on_image_end(const ImageEnd& end) override;
  void on_fork(const ProcessRecord& record, std::uint64_t due_ns);
  void on_enabled(ProcessIndex process, EnableResult result);
  void take_enabled_by_others();
  void scan_again(std::uint64_t now_ns);
  void finish_ended(std::uint64_t now_ns);
  void finish(const ImageEnd& end, std::uint64_t now_ns);
  void add_announcers(RunSummary& summary) const;
  void end_stacks();
  bool take_lifecycle_events();
  void poll_rings(std::uint64_t now_ns);
  bool probe(int fd, const std::shared_ptr<const Binary>& binary, std::uint32_t user);
  std::vector<FileLinks> give_links(std::vector<FileLinks> files) const;
  std::uint64_t longest_staged_ns() const;
  RingPoller::Room room_for(uid_t user) const;

  StreamParts stream_;
  // A thread ends before what it uses is destroyed: the inspector's uses probes_, ringless_ and
  // sched_attachment_, the reader's programs_.
  kernel::Programs programs_;
  std::optional<kernel::RinglessPrograms> ringless_programs_;  ///< with LiveOptions::ringless
  std::optional<kernel::StackPrograms> stack_programs_;        ///< with LiveOptions::stacks
  kernel::UprobeManager probes_;
  std::optional<kernel::UprobeManager> allocation_probes_;  ///< with StackOptions::allocations
  helper::HelperQueries queries_;                           ///< of this thread
  helper::HelperQueries lifecycle_queries_;                 ///< of the LifecycleReader's
  std::unique_ptr<helper::HelperQueries> code_queries_;     ///< of stacks_
  BinaryCache cache_;
  ProcessTable processes_;
  std::unique_ptr<StackStager> stacks_;  ///< with LiveOptions::stacks, else null
  std::unique_ptr<Ringless> ringless_;   ///< with LiveOptions::ringless, else null
  std::optional<Enabling> enabling_;     ///< with LiveOptions::enabler
  EnabledWatch enabled_watch_;
  SchedAttachment sched_attachment_;
  Inspector inspector_;
  RingStager ring_stager_;
  RingPoller rings_;
  KernelLink kernel_;
  Discovery discovery_;
  SchedStager sched_;
  LifecycleReader lifecycle_;
  std::map<Unreadable, std::uint64_t> unreadable_;  ///< rings that are not read
  /// An image that ended, and whose rings are read when there is room for their events.
  struct Ended {
    ImageEnd end;
    std::uint64_t deadline_ns;
  };
  std::vector<Ended> ended_;
  std::uint64_t max_delay_ns_;
  bool any_runs_ = true;
  bool has_news_ = false;
  bool drains_ = false;
  std::uint64_t armed_ns_ = 0;  ///< when BPF was last asked to report rings that fill up
  std::uint64_t last_collect_ns_ = 0;
  TimedTask collecting_;  ///< rings, and what is read as often; collect() does the work
  TimedTask scanning_;
  std::optional<std::uint64_t> last_whole_scan_ns_{};
  std::uint64_t dropped_records_ = 0;  ///< as of the last scan
};

}  // namespace rtev
