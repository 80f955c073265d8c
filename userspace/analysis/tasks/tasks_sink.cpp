// SPDX-License-Identifier: MIT
#include "analysis/tasks/tasks_sink.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

namespace rtev {
namespace {

/// To ask the system for events takes longer only if there are none, or if the thread has no CPU.
constexpr std::uint64_t max_poll_ns = 100'000;

/// The part of a run in which a task waited.
std::uint64_t waited_ns(const TaskRun& run, std::uint64_t begin_ns) {
  const std::uint64_t from_ns = std::max(run.begin_ns, begin_ns);
  return run.end_ns - std::min(run.end_ns, from_ns);
}

/// Whether a task waits for the system in this operation, not for another task: then it may have been ready during a
/// run. Eio names operations of its own like "Promise.await", with these exceptions.
bool waits_for_system(std::string_view operation) {
  constexpr std::array<std::string_view, 5> others{"await_cancel", "await-consumer", "await-producer",
                                                   "domain-local-await", "run-domain"};
  return !operation.empty() && operation[0] >= 'a' && operation[0] <= 'z' &&
         std::ranges::find(others, operation) == others.end();
}

}  // namespace

Tasks::~Tasks() = default;

void Tasks::header(const RunHeader& header) {
  header_ = header;
  finder_.header(header);
  last_ns_ = header.begin_ns();
}

void Tasks::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  report_.stacks = &registry.stacks();
  for (const Event& event : batch.events()) {
    last_ns_ = std::max(last_ns_, event.time);
    read_programs_.add(event, batch, registry);
    if (options_.what_for) finder_.add(event, batch, registry);
    tracker_.add(event, batch, registry);
    if (!options_.what_for) continue;
    time_.add(event, batch, registry);
    samples_.add(event, batch, registry);
  }
  registry_ = nullptr;
}

/// Null if there is no room.
TaskProgram* Tasks::program_of(ProcessIndex process, const Task& task) {
  if (const auto found = programs_.find(process); found != programs_.end()) return &found->second;
  if (programs_.size() >= max_programs) {
    ++report_.not_followed;
    return nullptr;
  }
  return &programs_.emplace(process, TaskProgram{.library = task.library}).first->second;
}

void Tasks::on_task_created(ProcessIndex process, const Task& task) {
  if (TaskProgram* const program = program_of(process, task)) ++program->created;
}

void Tasks::on_task_runs(ProcessIndex process, const Task& task) {
  const auto ended = std::exchange(ended_, std::nullopt);
  if (program_of(process, task) == nullptr) return;
  Domain& domain = domains_[{process, task.domain}];
  if (domain.last && ended && ended->task == task.id) {
    const std::uint64_t ns = waited_ns(*domain.last, ended->begin_ns);
    if (ns > 0 && (ended->runnable || waits_for_system(ended->operation)))
      add_wait(*domain.last, {.task = task, .certain = ended->runnable, .operation = ended->operation, .ns = ns});
  }
  if (domain.run) time_.stop(domain.run->meter, task.since_ns);
  domain.run = OpenRun{.meter = time_.start(registry_->process(process).pid, task.domain, task.since_ns)};
}

void Tasks::add_wait(TaskRun& run, TaskWait wait) {
  const auto order = [](const TaskWait& each) { return std::pair(each.certain, each.ns); };
  run.waits.insert(std::ranges::upper_bound(run.waits, order(wait), std::ranges::greater{}, order), std::move(wait));
  if (run.waits.size() <= max_waits) return;
  run.waits.pop_back();
  ++run.more_waits;
}

void Tasks::count(TaskOperation& operation, const Task& task, const TaskInterval& interval) {
  ++operation.count;
  operation.total_ns += interval.length_ns();
  if (interval.length_ns() < operation.longest_ns) return;
  operation.task = task;
  operation.longest_ns = interval.length_ns();
  operation.longest_begin_ns = interval.begin_ns;
  operation.goes_on = interval.goes_on;
}

void Tasks::on_task_interval(ProcessIndex process, const Task& task, const TaskInterval& interval) {
  ended_.reset();
  TaskProgram* const program = program_of(process, task);
  if (program == nullptr) return;
  if (interval.state == TaskState::running) return end_run(process, *program, task, interval);
  const bool runnable = interval.state == TaskState::runnable;
  ended_ = {.task = task.id,
            .runnable = runnable,
            .operation = std::string(interval.operation),
            .begin_ns = interval.begin_ns};
  // It may wait for a run that goes on, too, which is reported after it or before it.
  if (interval.goes_on && runnable && waiting_at_end_.size() < max_waiting_at_end)
    waiting_at_end_.emplace_back(interval.begin_ns, TaskWait{.task = task, .certain = true});
  if (runnable) return count(program->runnable, task, interval);
  auto operation = std::ranges::find(program->operations, interval.operation, &TaskOperation::name);
  if (operation == program->operations.end()) {
    if (program->operations.size() >= max_operations) {
      ++program->other_operations;
      return;
    }
    operation = program->operations.insert(operation, {.name = std::string(interval.operation)});
  }
  count(*operation, task, interval);
}

void Tasks::end_run(ProcessIndex process, TaskProgram& program, const Task& task, const TaskInterval& interval) {
  program.runs.record(interval.length_ns());
  const auto found = domains_.find({process, interval.domain});
  if (found == domains_.end() || !found->second.run) return;
  Domain& domain = found->second;
  const OpenRun open = *std::exchange(domain.run, std::nullopt);
  const TimeSplit time = time_.stop(open.meter, interval.end_ns);
  if (interval.length_ns() < options_.min_ns) return;
  keep_last(process, domain);
  domain.polls = 0;
  domain.last = TaskRun{.task = task,
                        .domain = interval.domain,
                        .begin_ns = interval.begin_ns,
                        .end_ns = interval.end_ns,
                        .goes_on = interval.goes_on,
                        .time = SpanTime::of(time, open.in_pauses),
                        .pauses = open.pauses,
                        .longest_pause_ns = open.longest_pause_ns};
  if (const auto tid = time_.writer_of(registry_->process(process).pid, interval.domain))
    domain.last->stacks = samples_.between(*tid, interval.begin_ns, interval.end_ns);
  start_meter(process, interval.domain, domain, interval.end_ns);
}

void Tasks::start_meter(ProcessIndex process, std::uint16_t number, Domain& domain, std::uint64_t time_ns) {
  domain.since_last = time_.start(registry_->process(process).pid, number, time_ns);
}

void Tasks::keep_last(ProcessIndex process, Domain& domain) {
  if (domain.since_last) time_.stop(*std::exchange(domain.since_last, std::nullopt), last_ns_);
  if (!domain.last) return;
  TaskRun run = *std::exchange(domain.last, std::nullopt);
  auto& longest = programs_.at(process).longest;
  longest.insert(std::ranges::upper_bound(longest, run.length_ns(), std::ranges::greater{}, &TaskRun::length_ns),
                 std::move(run));
  if (longest.size() > max_runs) longest.pop_back();
}

void Tasks::on_poll(ProcessIndex process, std::uint16_t number, std::uint64_t begin_ns, std::uint64_t end_ns) {
  const auto domain = domains_.find({process, number});
  if (domain == domains_.end() || !domain->second.last) return;
  const TimeSplit time = domain->second.since_last ? time_.stop(*domain->second.since_last, end_ns) : TimeSplit{};
  // It may also have taken long because it had no CPU.
  const bool took_long = end_ns - std::min(end_ns, begin_ns) > max_poll_ns;
  const bool waited = took_long && (time.unknown > 0 || time.blocked() > max_poll_ns);
  if (waited || ++domain->second.polls >= 2) return keep_last(process, domain->second);
  start_meter(process, number, domain->second, end_ns);
}

void Tasks::on_task_end(ProcessIndex process, const Task& task, TaskEnd how, std::string_view error,
                        std::uint64_t time_ns) {
  TaskProgram* const program = program_of(process, task);
  if (program == nullptr) return;
  switch (how) {
    case TaskEnd::finished:
      ++program->finished;
      return;
    case TaskEnd::cancelled:
      ++program->cancelled;
      return;
    case TaskEnd::failed:
      ++program->failed;
      if (program->failures.size() < max_failures)
        program->failures.push_back({.task = task, .error = std::string(error), .time_ns = time_ns});
      return;
  }
}

void Tasks::on_tasks_unknown(ProcessIndex process, std::uint16_t number) {
  ended_.reset();
  const auto domain = domains_.find({process, number});
  if (domain == domains_.end()) return;
  if (domain->second.run) time_.stop(domain->second.run->meter, last_ns_);
  domain->second.run.reset();
  keep_last(process, domain->second);
}

void Tasks::on_tasks_gone(ProcessIndex process, std::uint64_t /*time_ns*/) {
  const auto program = programs_.find(process);
  if (program != programs_.end()) {
    for (const auto& states : tracker_.counts(process))
      for (std::size_t state = 0; state < states.size(); ++state) program->second.states.at(state) += states.at(state);
    const ProcessInfo& info = registry_->process(process);
    program->second.pid = info.pid;
    program->second.comm = info.name;
  }
  for (auto domain = domains_.lower_bound({process, 0}); domain != domains_.end() && domain->first.first == process;) {
    if (domain->second.run) time_.stop(domain->second.run->meter, last_ns_);
    if (domain->second.pause) time_.stop(*domain->second.pause, last_ns_);
    if (auto& last = domain->second.last; last && last->goes_on) {
      for (auto& [begin_ns, wait] : waiting_at_end_) {
        if (wait.task.domain != domain->first.second) continue;
        wait.ns = waited_ns(*last, begin_ns);
        add_wait(*last, wait);
      }
    }
    keep_last(process, domain->second);
    domain = domains_.erase(domain);
  }
  waiting_at_end_.clear();
}

void Tasks::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end() || !domain->second.run) return;
  domain->second.pause = time_.start(life.pid, life.domain, root.time_ns);
}

void Tasks::on_pause_end(const DomainLife& life, const PhaseEnd& root) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end() || !domain->second.pause) return;
  const TimeSplit time = time_.stop(*std::exchange(domain->second.pause, std::nullopt), root.end_ns);
  if (!domain->second.run) return;
  OpenRun& run = *domain->second.run;
  run.in_pauses += time;
  ++run.pauses;
  run.longest_pause_ns = std::max(run.longest_pause_ns, root.end_ns - root.begin_ns);
}

void Tasks::on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished /*reason*/) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end() || !domain->second.pause) return;
  time_.stop(*std::exchange(domain->second.pause, std::nullopt), root.end_ns);
}

void Tasks::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  registry_ = &registry;
  finder_.finish(last_ns_);
  tracker_.finish(last_ns_);
  registry_ = nullptr;
  domains_.clear();
  for (auto& [process, program] : programs_) {
    std::ranges::sort(program.operations, std::ranges::greater{}, &TaskOperation::longest_ns);
    report_.programs.push_back(std::move(program));
  }
  programs_.clear();
  std::ranges::sort(report_.programs, [](const TaskProgram& a, const TaskProgram& b) {
    return std::tuple(b.runs.max(), a.pid) < std::tuple(a.runs.max(), b.pid);
  });
  report_.version = header_.version;
  report_.run_ns = header_.start_ns;
  report_.run_realtime_ns = header_.start_realtime_ns;
  report_.start_ns = header_.begin_ns();
  report_.end_ns = last_ns_;
  report_.truncated = !summary.complete;
  report_.not_recorded = header_.not_recorded;
  report_.not_recorded.note(summary.events);
  report_.read_programs = read_programs_.programs(registry);
  report_.lacks = lacks_of(with_scheduler_gaps(summary, scheduler_gaps()), registry);
  report_.min_ns = options_.min_ns;
  report_.full = options_.full;
  report_.input = options_.input;
  report_.scheduler_seen = time_.switches_seen();
  report_.not_followed += tracker_.not_followed();
}

LimitedDurations Tasks::limited() const {
  LimitedDurations lengths;
  lengths.all.reserve(report_.programs.size());
  for (const TaskProgram& program : report_.programs)
    lengths.all.push_back(
        {.what = "runs of tasks", .comm = program.comm, .pid = program.pid, .durations = &program.runs});
  if (lengths.all.empty()) {
    lengths.why_none = "no task was seen";
  } else if (std::ranges::all_of(lengths.all, [](const Limited& of) { return of.durations->count() == 0; })) {
    lengths.why_none = "no run of a task ended";
  }
  return lengths;
}

}  // namespace rtev
