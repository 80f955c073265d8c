// SPDX-License-Identifier: MIT
// What a session reads without BPF and without rights: rings of programs of the same user, and /proc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "helper/helper_process.hpp"
#include "helper/process_queries.hpp"
#include "kernel/stack_source.hpp"
#include "processes/process_table.hpp"
#include "processes/rings/ring_opener.hpp"
#include "session/live/ring_poller.hpp"
#include "session/live/ring_stager.hpp"
#include "session/live/sources.hpp"
#include "session/live/stacks/stack_stager.hpp"
#include "session/rootless/program_naming.hpp"
#include "session/rootless/ring_finder.hpp"
#include "session/rootless/thread_sampler.hpp"

namespace rtev {

/// Follows a command, or chosen processes. The kernel reports nothing: rings are read so often that their programs
/// cannot fill them in between, and the end of a process is seen by its pidfd.
class RootlessSources final : public Sources, private NoKernelControl {
 public:
  /// `options.discovery.filter.pids` are the processes, unless a command is followed. `helper` must outlive the object.
  /// `samples_threads`: adds scheduler records, whose CPUs mean nothing: see ThreadSampler.
  /// `stacks`: where stacks come from; null: none are taken.
  RootlessSources(const SessionOptions& options, const StreamParts& stream, const helper::HelperProcess& helper,
                  std::optional<FollowedCommand> followed, bool samples_threads,
                  std::unique_ptr<kernel::StackSource> stacks);

  void begin_scan(std::uint64_t) override {}
  void scan_some() override {}
  Collected collect() override;
  Watermark::Holds holds(std::uint64_t read_until_ns) override;
  void drain(Rest rest) override;
  void update_registry() override { rings_.update(stream_.registry); }
  void add_figures(RunSummary& summary) const override;
  bool is_inspecting() const override;
  std::vector<int> event_fds() const override;
  void await_inspected(int timeout_ms) const override;
  bool any_runs() const override { return rings_.next_poll_ns().has_value(); }
  bool has_news() const override { return has_news_; }
  bool is_behind() const override { return false; }
  void wake_if_active() override {}

 private:
  /// How long delivered events are held back at least: what a process event may be older.
  static constexpr std::uint64_t max_age_ns = 30'000'000;
  /// How long images that ended wait for room for their events, and how many of them.
  static constexpr std::uint64_t max_end_wait_ns = 500'000'000;
  static constexpr std::size_t max_waiting_ends = 256;

  /// What is known of a process of the table besides.
  struct Watched {
    UniqueFd end;  ///< pidfd; none if the process was gone already
    std::vector<std::shared_ptr<RingReader>> rings{};
    std::uint64_t last_ring_ns = 0;
    std::uint64_t ended_ns = 0;  ///< 0: it runs, as far as is known
  };
  /// An image that ended, and whose rings are read when there is room for their events.
  struct Ended {
    ProcessIndex process;
    std::vector<std::uint32_t> slots;
    std::vector<RingFileId> files;
    std::uint64_t time_ns;
    std::uint64_t deadline_ns;
    bool by_exec;
  };

  void open_found(std::uint64_t now_ns);
  bool open(FoundRings& found, std::uint64_t now_ns);
  TracedProcess* process_of(FoundRings& found, std::uint64_t now_ns);
  TracedProcess& add(const FoundRings& found, Image image, std::uint64_t now_ns);
  bool belongs_to_command(const FoundRings& found) const;
  void add_ring(TracedProcess& process, const RingOpener::Ring& ring, std::uint64_t now_ns);
  void refuse(TracedProcess& process, const OpenedRing& ring, Unreadable why, std::uint64_t now_ns);
  void add_to_stream(TracedProcess& process);
  void poll_rings(std::uint64_t now_ns);
  static bool is_replaced(const Watched& watched);
  void find_successors(std::uint64_t now_ns);
  void find_ends();
  void end_processes();
  void end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status);
  void finish_ended(std::uint64_t now_ns);
  void end_stacks();
  void finish(const Ended& image, std::uint64_t now_ns);
  RingPoller::Room room_for(uid_t user) const;
  void report(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record);

  /// RingOpener uses only parts of a DiscoveryContext.
  struct NoEvents final : ProcessEvents {
    void on_process(std::uint64_t, ProcessAction, const ProcessRecord&) override {}
    void on_ring(ProcessIndex, std::uint32_t, std::shared_ptr<RingReader>) override {}
    void on_image_end(const ImageEnd&) override {}
  };

  StreamParts stream_;
  DiscoveryOptions options_;
  std::optional<FollowedCommand> followed_;
  helper::HelperQueries queries_;
  ProcessTable processes_;
  ProgramNaming names_;
  RingStager ring_stager_;
  RingPoller rings_;
  NoEvents no_events_;
  DiscoveryContext context_;
  RingOpener opener_;
  RingFinder finder_;
  std::optional<ThreadSampler> sampler_;
  UniqueFd ends_;  ///< epoll: pidfds, by pid
  std::unique_ptr<kernel::StackSource> stack_source_;
  std::unique_ptr<helper::HelperQueries> code_queries_;  ///< of stacks_
  std::unique_ptr<StackStager> stacks_;                  ///< null: none are taken
  std::map<std::int32_t, Watched> watched_;
  std::vector<Ended> ended_;
  std::map<Unreadable, std::uint64_t> unreadable_;
  TimedTask collecting_;  ///< when collect() has something to do again
  bool has_news_ = false;
  bool drains_ = false;
};

}  // namespace rtev
