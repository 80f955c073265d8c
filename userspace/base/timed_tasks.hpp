// SPDX-License-Identifier: MIT
// What a loop has to do at certain times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace rtev {

class TimedTask;

/// The tasks of a loop, which in each turn runs those that are due, and then sleeps until the next one is at the
/// latest. One thread; times are ns of the loop's clock.
class TimedTasks {
 public:
  TimedTasks() = default;
  TimedTasks(const TimedTasks&) = delete;
  TimedTasks& operator=(const TimedTasks&) = delete;

  /// Runs what is due, in the order in which the tasks were made.
  void run(std::uint64_t now_ns);
  /// When the next task is due; nothing if none is.
  std::optional<std::uint64_t> next_due_ns() const;

 private:
  friend class TimedTask;
  std::vector<TimedTask*> tasks_;
};

/// Something that a loop does at a time, of which there is at most one. The task forgets it before it runs: a time that
/// stayed in the past would keep the loop from ever sleeping again.
class TimedTask {
 public:
  using Function = std::function<void(std::uint64_t now_ns)>;

  /// Never due at first. `tasks` must outlive it. The function may set the times of tasks, but makes and ends none. A
  /// task without a function only ends the sleep of its loop, which does the work in each turn.
  explicit TimedTask(TimedTasks& tasks, Function function = {}) : tasks_(tasks), function_(std::move(function)) {
    tasks_.tasks_.push_back(this);
  }
  ~TimedTask() { std::erase(tasks_.tasks_, this); }
  TimedTask(const TimedTask&) = delete;
  TimedTask& operator=(const TimedTask&) = delete;

  /// It is due then, instead of when it was; nothing: never.
  void at(std::optional<std::uint64_t> time_ns) { due_ns_ = time_ns; }
  /// It is due then at the latest.
  void by(std::uint64_t time_ns) { due_ns_ = std::min(due_ns_.value_or(time_ns), time_ns); }
  /// It is due in the next turn, which follows without a sleep.
  void at_once() { due_ns_ = 0; }
  std::optional<std::uint64_t> due_ns() const { return due_ns_; }

 private:
  friend class TimedTasks;
  TimedTasks& tasks_;
  Function function_;
  std::optional<std::uint64_t> due_ns_;
};

inline void TimedTasks::run(std::uint64_t now_ns) {
  for (TimedTask* const task : tasks_) {
    if (!task->due_ns_ || *task->due_ns_ > now_ns) continue;
    task->due_ns_.reset();
    if (task->function_) task->function_(now_ns);
  }
}

inline std::optional<std::uint64_t> TimedTasks::next_due_ns() const {
  std::optional<std::uint64_t> next;
  for (const TimedTask* const task : tasks_)
    if (task->due_ns_) next = std::min(next.value_or(*task->due_ns_), *task->due_ns_);
  return next;
}

}  // namespace rtev
