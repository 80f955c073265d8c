// SPDX-License-Identifier: MIT
// Statistics of the garbage collector by process and domain: a fold over the stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/pause_finder.hpp"
#include "analysis/stats/stats_figures.hpp"
#include "analysis/stats/stats_report.hpp"
#include "analysis/utilization/mutator_utilization.hpp"
#include "stream/sink.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

struct StatsOptions {
  /// The most ended processes, and ended domains of a process, that are remembered one by one.
  std::size_t ended_processes = 1024;
  std::size_t ended_domains = 128;
  /// Of processes and domains. Beyond that those with the least time in the garbage collector are merged: ended
  /// processes, and domains of running ones. A report takes about twice as much again.
  std::size_t max_bytes = std::size_t{8} << 20;
  bool full = false;  ///< text with a section for each process
  /// Called for each ended process that report() will not list, because there are more than it remembers.
  std::function<void(const ProcessStats&)> on_unlisted{};
  bool by_process = false;  ///< StatsReport::by_process
  bool gc_tuning = false;   ///< what the figures say about parameters of the garbage collector
  bool utilization = true;  ///< false: StatsReport::utilization stays empty, and reports take little time
  bool cpu_time = true;     ///< false: scheduler events are ignored, and CPU time is unknown
};

/// Takes the stream as any sink does and writes nothing: ask for report() when it is wanted. Only what was seen is
/// counted: collections and calls when they begin, words when a collection reports them. Memory is bounded by the
/// options, but for some KiB for each process that runs. One thread.
class Stats final : public Sink, private PauseListener, private ThreadObserver {
 public:
  explicit Stats(const StatsOptions& options = {});
  Stats(const Stats&) = delete;
  Stats& operator=(const Stats&) = delete;
  ~Stats() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return threads_.inconsistent_switches(); }

  /// The stream is complete until then: what goes on lasts at least so long.
  void go_on_until(std::uint64_t time_ns) { now_ns_ = std::max(now_ns_, time_ns); }

  /// Of what is remembered of processes and domains, in bytes.
  std::size_t memory_bytes() const { return bytes_; }
  /// Of what was consumed until now. What still goes on counts as far as it got.
  StatsReport report(const Registry& registry);
  std::string report_text(const Registry& registry) {
    return stats_text(report(registry), options_.full, options_.gc_tuning);
  }
  std::string report_json(const Registry& registry) { return stats_json(report(registry), options_.gc_tuning); }

 private:
  struct Incarnation;
  struct Process;

  void add(const Event& event, const Batch& batch, const Registry& registry);
  void add_process(const Event& event, const Batch& batch, const Registry& registry);
  void end_process(Process& process, std::int64_t status, const Event& event, const Batch& batch,
                   const Registry& registry);
  void merge_least(const Registry& registry);
  void merge(const Process& ended, bool replaced);
  Process& process_at(ProcessIndex index, const Registry& registry, std::uint64_t time_ns);
  Process* known_process(ProcessIndex index);
  Process* process_of(std::int32_t pid);

  void add_switch(const Event& event, const Batch& batch, const Registry& registry);
  void add_sample(const Event& event, const Batch& batch, const Registry& registry);
  void count_samples(const Registry& registry, bool is_end);
  void on_thread_interval(const ThreadInterval& interval) override;
  std::vector<ThreadInterval> running() const;

  Incarnation* domain_at(const DomainLife& life);
  Process* merged_process(const DomainLife& life);

  void on_domain_begin(const DomainLife& life, std::uint64_t time_ns, bool certain) override;
  void on_domain_end(const DomainLife& life, std::uint64_t time_ns) override;
  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override;
  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) override;
  void on_loss(const DomainLife& life, const Loss& loss) override { utilization_.lose(life, loss.from_ns); }

  void set_left_out(Missing& missing) const;
  DomainStats stats_of(const Process& process, const Incarnation& domain,
                       const std::vector<ThreadInterval>& running) const;
  ProcessStats stats_of(const Process& process, const std::vector<ThreadInterval>& running) const;

  StatsOptions options_;
  PauseFinder pauses_{*this};
  ThreadTracker threads_{this};
  MutatorUtilization utilization_;
  std::size_t bytes_ = 0, merge_at_bytes_;  ///< of processes_
  std::unordered_map<ProcessIndex, Process> processes_;
  Process* last_process_ = nullptr;                        ///< the one asked for last: events come in runs
  std::unordered_map<std::int32_t, ProcessIndex> images_;  ///< by pid, of those that run
  std::size_t ended_ = 0;                                  ///< processes that ended and are not merged
  std::uint64_t other_process_count_ = 0;
  std::uint64_t other_replaced_ = 0;     ///< of them: see StatsReport
  std::uint64_t other_did_nothing_ = 0;  ///< of them
  ReadPrograms other_read_programs_;     ///< these processes
  StatsFigures other_processes_;
  std::unordered_map<std::string, ProgramStats> other_programs_;  ///< of these processes, by key
  std::string version_;
  std::uint64_t run_ns_ = 0, run_realtime_ns_ = 0;  ///< of the header
  std::uint64_t start_ns_ = 0;
  std::uint64_t shown_from_ns_ = 0;      ///< earlier events make no time longer; 0: they do
  std::uint64_t now_ns_ = 0;             ///< newest time seen
  std::uint64_t switches_since_ns_ = 0;  ///< none are missing from then on
  std::uint64_t switches_dropped_ = 0;
  struct Sampled {
    ProcessIndex process;
    StackIndex stack;
    std::uint64_t ns;
    bool in_phase;
  };
  static constexpr std::size_t max_sampled = std::size_t{1} << 16;
  std::deque<Sampled> sampled_;  ///< not counted: the stack of the first one is not known yet
  std::uint64_t rings_missed_ = 0;
  std::vector<Lack> lacks_;
  bool truncated_ = false;
  NotRecorded not_recorded_;
  bool scheduler_seen_ = false;
  Allocators allocators_;
};

}  // namespace rtev
