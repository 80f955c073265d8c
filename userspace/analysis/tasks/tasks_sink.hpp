// SPDX-License-Identifier: MIT
// `rtev-bpf tasks`: measures how long tasks run, and how long they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/latency/domain_time.hpp"
#include "analysis/limits.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/tasks/task_tracker.hpp"
#include "analysis/tasks/tasks_report.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct TasksOptions {
  std::uint64_t min_ns = 10'000'000;  ///< TasksReport::min_ns
  bool full = false;                  ///< TasksReport::full
  std::string input{};                ///< TasksReport::input
  bool what_for = true;               ///< what runs were spent on, and where the thread was; else that is unknown
};

/// A fold over the stream. Memory is bounded. One thread.
///
/// Who waits for a long run: tasks that can run, and those that wait for the system in it and run right after it.
/// "Right after" is before the domain has asked the system twice for events: the first time it gets those that came
/// during the run. If it is blocked then, there were none.
class Tasks final : public Sink, private PauseListener, private TaskObserver {
 public:
  explicit Tasks(TasksOptions options) : options_(std::move(options)) {}
  ~Tasks() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return time_.inconsistent_switches(); }

  /// After summary().
  const TasksReport& report() const { return report_; }
  /// Of a process, as of now; null: it has no tasks. Valid until the next call of a non-const function.
  const TaskProgram* program(ProcessIndex process) const {
    const auto found = programs_.find(process);
    return found != programs_.end() ? &found->second : nullptr;
  }
  /// The lengths of runs, for limits.
  LimitedDurations limited() const;
  std::string report_text() const { return tasks_text(report_); }
  std::string report_json() const { return tasks_json(report_); }

  static constexpr std::size_t max_programs = 64, max_operations = 64, max_runs = 100, max_waits = 16,
                               max_failures = 20, max_waiting_at_end = 256;

 private:
  using DomainKey = std::pair<ProcessIndex, std::uint16_t>;

  struct OpenRun {
    DomainTime::Meter meter{};
    TimeSplit in_pauses{};
    std::uint64_t pauses = 0, longest_pause_ns = 0;
  };
  struct Domain {
    std::optional<OpenRun> run{};
    std::optional<DomainTime::Meter> pause{};
    std::optional<TaskRun> last{};                  ///< the last long run, while it is not known who waited for it
    std::uint32_t polls = 0;                        ///< since then
    std::optional<DomainTime::Meter> since_last{};  ///< or since the last poll
  };
  /// The interval of a task that ended last.
  struct Ended {
    std::int64_t task = 0;
    bool runnable = false;
    std::string operation{};
    std::uint64_t begin_ns = 0;
  };

  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) override;
  void on_loss(const DomainLife& /*life*/, const Loss& loss) override { report_.lost.add(loss); }

  void on_task_created(ProcessIndex process, const Task& task) override;
  void on_task_runs(ProcessIndex process, const Task& task) override;
  void on_task_interval(ProcessIndex process, const Task& task, const TaskInterval& interval) override;
  void on_task_end(ProcessIndex process, const Task& task, TaskEnd how, std::string_view error,
                   std::uint64_t time_ns) override;
  void on_tasks_unknown(ProcessIndex process, std::uint16_t number) override;
  void on_poll(ProcessIndex process, std::uint16_t number, std::uint64_t begin_ns, std::uint64_t end_ns) override;
  void on_tasks_gone(ProcessIndex process, std::uint64_t time_ns) override;

  TaskProgram* program_of(ProcessIndex process, const Task& task);
  void end_run(ProcessIndex process, TaskProgram& program, const Task& task, const TaskInterval& interval);
  static void add_wait(TaskRun& run, TaskWait wait);
  static void count(TaskOperation& operation, const Task& task, const TaskInterval& interval);
  /// It is known who waited for the last long run of a domain.
  void keep_last(ProcessIndex process, Domain& domain);
  void start_meter(ProcessIndex process, std::uint16_t number, Domain& domain, std::uint64_t time_ns);

  TasksOptions options_;
  PauseFinder finder_{*this};
  TaskTracker tracker_{this};
  DomainTime time_;
  SampleHistory samples_;
  std::map<DomainKey, Domain> domains_;
  std::map<ProcessIndex, TaskProgram> programs_;
  std::optional<Ended> ended_;
  std::vector<std::pair<std::uint64_t, TaskWait>> waiting_at_end_;  ///< of a process that ends, with its begin
  const Registry* registry_ = nullptr;                              ///< while events come
  RunHeader header_{};
  ReadProgramCount read_programs_;
  TasksReport report_{};
  std::uint64_t last_ns_ = 0;
};

}  // namespace rtev
