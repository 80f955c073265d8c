// SPDX-License-Identifier: MIT
// `rtev-bpf stalls`: finds the event loops of programs, and the turns that took too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/cpu_history.hpp"
#include "analysis/limits.hpp"
#include "analysis/missing_events.hpp"
#include "analysis/open_spans.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/spans/library_spans.hpp"
#include "analysis/stalls/event_loop.hpp"
#include "analysis/stalls/stalls_report.hpp"
#include "analysis/tasks/task_tracker.hpp"
#include "stream/sink.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

struct StallsOptions {
  /// Called at the end of each stall of a thread that is known to have a loop by then, with its process. May be empty.
  std::function<void(ProcessIndex, const Stall&)> on_stall{};
  std::uint64_t min_ns = 50'000'000;
  std::size_t top = 0;                   ///< StallsReport::top
  bool full = false;                     ///< StallsReport::full
  std::uint64_t sample_interval_ns = 0;  ///< StallsReport::sample_interval_ns
  std::string input{};                   ///< StallsReport::input
};

/// A fold over the stream. A thread has a loop if it waits for events again and again. Memory is bounded. One thread.
class Stalls final : public Sink, private PauseListener, private ThreadObserver, private TaskObserver {
 public:
  explicit Stalls(StallsOptions options) : options_(std::move(options)) {}
  ~Stalls() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return threads_.inconsistent_switches(); }

  /// After summary().
  const StallsReport& report() const { return report_; }
  /// The lengths of stalls, for limits.
  LimitedDurations limited() const;
  std::string report_text() const { return stalls_text(report_); }
  std::string report_json() const { return stalls_json(report_); }

  /// `max_loops`: of threads that live at the same time.
  static constexpr std::size_t max_loops = 512, max_programs = 512, max_open_spans = 64, max_stalls = 100;

 private:
  using DomainKey = std::pair<ProcessIndex, std::uint16_t>;

  struct LoopThread {
    std::int32_t pid = 0;
    std::int32_t domain = -1;
    Syscall call = Syscall::unknown;
    EventLoop loop;
  };
  struct Domain {
    OpenSpans<max_open_spans> spans{};
    std::int32_t pause_tid = 0;  ///< of the pause in it, or 0
    ThreadTracker::Snapshot pause_begin{};
  };

  void on_thread_interval(const ThreadInterval& interval) override;
  void on_cpu_interval(const CpuInterval& interval) override { cpus_.add(interval); }
  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override;
  void on_task_interval(ProcessIndex process, const Task& task, const TaskInterval& interval) override;
  void on_domain_end(const DomainLife& life, std::uint64_t /*time_ns*/) override { forget(life); }
  void on_loss(const DomainLife& life, const Loss& loss) override;

  void switch_threads(const Event& event, const Batch& batch, const Registry& registry);
  void process_event(const Event& event, const Batch& batch, const Registry& registry);
  void user_span(const Event& event, const Batch& batch, const Registry& registry);
  void end_span(const std::optional<OpenSpan>& span, std::int32_t pid, const Event& event);
  void forget(const DomainLife& life);
  LoopThread* loop_of(std::int32_t pid, std::uint16_t domain);
  void task_ran(EventLoop& loop, const Task& task, std::uint64_t begin_ns, std::uint64_t end_ns) const;
  void wait_for_events(const ThreadInterval& interval);
  std::optional<EventLoop::LongTurn> long_turn(std::int32_t tid, LoopThread& thread, std::uint64_t end_ns);
  bool knows_pauses(std::int32_t pid, std::uint64_t since_ns) const;
  /// The thread ended, or the run did.
  void finish(const LoopThread& thread);

  StallsOptions options_;
  PauseFinder finder_{*this};
  LibrarySpans libraries_;
  TaskTracker tasks_{this};
  ThreadTracker threads_{this};
  CpuHistory cpus_{threads_};
  DroppedEvents dropped_;
  SampleHistory samples_;
  std::unordered_map<std::int32_t, LoopThread> loops_;  ///< by tid
  std::map<DomainKey, Domain> domains_;
  std::unordered_map<std::int32_t, ProcessIndex> images_;  ///< by pid: the present one
  std::map<ProcessIndex, LoopProgram> programs_;
  std::unordered_map<ProcessIndex, std::uint64_t> lost_until_;  ///< of processes that run: phases are missing
  const Registry* registry_ = nullptr;                          ///< while events come
  RunHeader header_{};
  ReadProgramCount read_programs_;
  StallsReport report_{};
  std::uint64_t last_ns_ = 0;
};

}  // namespace rtev
