// SPDX-License-Identifier: MIT
// Has the events of programs switched on as they come into view.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/timed_tasks.hpp"
#include "enable/enabler.hpp"
#include "session/live/left_out_programs.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Asks the enabler process, and never waits for it. One thread; times are ns of CLOCK_MONOTONIC.
class Enabling {
 public:
  /// A program that has just begun has its runtime start events itself within this time, if it does.
  static constexpr std::uint64_t start_delay_ns = 100'000'000;

  /// An image, and what became of it. Not called for programs that have their events on, or have ended.
  using Report = std::function<void(ProcessIndex, EnableResult)>;
  /// The enabler process: see enable::Enabler.
  struct Channel {
    int event_fd = -1;
    std::function<bool(const enable::EnableRequest&)> ask;  ///< does not wait
    std::function<Result<std::vector<enable::EnableAnswer>>()> take;
  };
  /// `registry` and `tasks` must outlive the object; the latter asks for programs that are due.
  Enabling(Channel enabler, const Registry& registry, TimedTasks& tasks, Report report)
      : enabler_(std::move(enabler)),
        registry_(registry),
        report_(std::move(report)),
        asking_(tasks, [this](std::uint64_t now_ns) { ask(now_ns); }) {}

  /// An image of the stream is to be asked for at this time.
  void consider(ProcessIndex process, std::uint64_t due_ns) { add(process, {.time_ns = due_ns, .parent = {}}); }
  /// The same for a child that was forked. The runtime makes a ring in it if its parent has one.
  void consider_child(ProcessIndex child, ProcessIndex parent, std::uint64_t due_ns) {
    add(child, {.time_ns = due_ns, .parent = parent});
  }
  /// The image ended.
  void forget(ProcessIndex process);

  /// Takes answers of the enabler process.
  void take_answers(std::uint64_t now_ns);
  /// Readable (epoll) when there are any.
  int event_fd() const { return enabler_.event_fd; }

  /// True once the enabler process is gone.
  bool has_failed() const { return failure_.has_value(); }
  /// What went wrong, for people; empty if nothing did.
  std::string failure_text() const;

 private:
  struct Due {
    std::uint64_t time_ns;
    std::optional<ProcessIndex> parent;  ///< of a forked child
  };

  /// Of a program that is asked for again.
  struct Lack {
    std::int32_t pid;
    std::string exe, why;
  };

  void add(ProcessIndex process, const Due& due);
  void ask(std::uint64_t now_ns);

  Channel enabler_;
  const Registry& registry_;
  Report report_;
  std::map<ProcessIndex, Due> due_;
  std::map<ProcessIndex, std::int32_t> asked_;  ///< pids of those without an answer
  std::map<ProcessIndex, Lack> lacking_;
  std::map<ProcessIndex, unsigned> lacked_;  ///< how often
  std::set<ProcessIndex> ours_;              ///< whose events are on because of this run, and their children
  TimedTask asking_;
  std::optional<Error> failure_;
  LeftOutPrograms left_out_{not_enabled_wording};
};

}  // namespace rtev
