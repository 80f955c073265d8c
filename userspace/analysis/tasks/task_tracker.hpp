// SPDX-License-Identifier: MIT
// The tasks of programs: which there are, and which of them runs on which domain. A task is a fiber of Eio, or a task
// of Miou.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/tasks/task_events.hpp"
#include "base/text_buffer.hpp"
#include "stream/registry.hpp"

namespace rtev {

enum class TaskState : std::uint8_t {
  runnable,   ///< it can run, and another one runs
  running,    ///< on a domain
  suspended,  ///< it waits for an operation; or it can run by now, which not every event tells
};
inline constexpr std::size_t task_state_count = 3;
std::string_view to_string(TaskState state);

enum class TaskEnd : std::uint8_t {
  finished,
  failed,     ///< by an error of its own
  cancelled,  ///< its context was cancelled, or it was
};
std::string_view to_string(TaskEnd how);

/// What a program says of a task. Texts are any bytes, and cut.
struct Task {
  TaskLibrary library{};
  std::int64_t id = 0;
  std::string name{};  ///< of Miou: where it was created, "server.ml:42", or what it runs; empty: none
  std::optional<std::int64_t> creator{};  ///< the task that created it, if that is known
  std::optional<std::int64_t> context{};  ///< of Eio: the cancellation context that it was created in
  std::string context_name{};             ///< that it had then; empty: none
  std::uint16_t domain = 0;               ///< where it ran last; before that, where it was created
  std::uint64_t created_ns = 0;           ///< 0: it was not seen
  TaskState state{};
  std::string operation{};     ///< of suspended: what it waits for; may be empty
  std::uint64_t since_ns = 0;  ///< of the state
};

/// `fiber 12 "worker"`, or `fiber 12 of "server"` by the name of its context; escaped. Long names are cut unless
/// `whole`.
struct TaskName {
  const Task& task;
  bool whole = false;
};
void append(TextBuffer& out, const TaskName& name);

/// A cancellation context of Eio: a switch, for example.
struct TaskContext {
  std::string type{}, name{};            ///< as the program made them
  std::optional<std::int64_t> parent{};  ///< the context around it
  bool failed = false;                   ///< its tasks are cancelled
};

/// A time in which a task was in one state, known from begin to end.
struct TaskInterval {
  TaskState state{};
  std::string_view operation{};
  std::uint16_t domain = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  bool goes_on = false;  ///< the stream ended in it

  std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

/// Called by a TaskTracker. All do nothing unless overridden.
class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  virtual void on_task_created(ProcessIndex /*process*/, const Task& /*task*/) {}
  /// It runs from Task::since_ns on.
  virtual void on_task_runs(ProcessIndex /*process*/, const Task& /*task*/) {}
  virtual void on_task_interval(ProcessIndex /*process*/, const Task& /*task*/, const TaskInterval& /*interval*/) {}
  /// What was open of it has been reported; `error` is of failed ones.
  virtual void on_task_end(ProcessIndex /*process*/, const Task& /*task*/, TaskEnd /*how*/, std::string_view /*error*/,
                           std::uint64_t /*time_ns*/) {}
  /// It is unknown what its tasks do, as events of the domain are missing. One that ran does so no more.
  virtual void on_tasks_unknown(ProcessIndex /*process*/, std::uint16_t /*domain*/) {}
  /// The domain asked the system for events.
  virtual void on_poll(ProcessIndex /*process*/, std::uint16_t /*domain*/, std::uint64_t /*begin_ns*/,
                       std::uint64_t /*end_ns*/) {}
  /// The process ended, with its tasks.
  virtual void on_tasks_gone(ProcessIndex /*process*/, std::uint64_t /*time_ns*/) {}
};

/// A fold over the stream. Suspensions, spans and contexts carry no task: they belong to the one that runs on the
/// domain. After a loss that is unknown until an event says which. Memory is bounded. One thread.
class TaskTracker {
 public:
  struct Limits {
    std::size_t tasks = std::size_t{1} << 15;  ///< that live at the same time, of all processes
    std::size_t contexts = std::size_t{1} << 14;
    std::size_t domains = std::size_t{1} << 16;
  };
  static constexpr std::size_t max_text_bytes = 64;  ///< of names and operations
  static constexpr std::size_t max_nested_contexts = 64;

  explicit TaskTracker(TaskObserver* observer = nullptr) : TaskTracker(observer, Limits{}) {}
  TaskTracker(TaskObserver* observer, const Limits& limits) : observer_(observer), limits_(limits) {}
  TaskTracker(const TaskTracker&) = delete;
  TaskTracker& operator=(const TaskTracker&) = delete;

  /// Uses user events, losses, ends of domains and of processes, and samples to name tasks; ignores all other events.
  void add(const Event& event, const Batch& batch, const Registry& registry) {
    // Inline: called for each event, of which most are others.
    if (event.kind == EventKind::sample && nameless_ > 0) return use_sample(event, batch, registry);
    if (event.kind < EventKind::lifecycle || event.kind > EventKind::process) return;
    if (!is_user_event(event.kind) || !events_.is_other(event, registry)) use(event, batch, registry);
  }
  /// At the end of the stream: reports the states that go on.
  void finish(std::uint64_t time_ns);

  /// The task that runs on the domain; null if none does, or it is unknown.
  const Task* running(ProcessIndex process, std::uint16_t domain) const;
  /// The same as a TaskName; empty if there is none.
  std::string running_name(ProcessIndex process, std::uint16_t domain) const;
  /// "switch 5 "main" in root 1": a context and those around it; escaped.
  std::string context_text(ProcessIndex process, std::int64_t context) const;
  const Task* find(ProcessIndex process, TaskLibrary library, std::int64_t id) const;
  /// By library and state.
  using Counts = std::array<std::array<std::uint64_t, task_state_count>, task_library_count>;
  Counts counts(ProcessIndex process) const {
    const auto of = processes_.find(process);
    return of != processes_.end() ? of->second.counts : Counts{};
  }
  /// How often there was no room for a task.
  std::uint64_t not_followed() const { return not_followed_; }

 private:
  using TaskKey = std::pair<TaskLibrary, std::int64_t>;

  using Waiters = std::multimap<std::int64_t, TaskKey>;  ///< by object, in the order they came

  struct Entry {
    Task task{};
    std::vector<std::int64_t> contexts{};          ///< that it has entered, outermost first
    std::optional<Waiters::iterator> waits_for{};  ///< an object of the program
    std::string error{};                           ///< of its context, since it runs
    std::string next_operation{};                  ///< that it is about to wait for
    bool cancelled = false;
    bool is_nameless = false;  ///< its name is a line of the standard library, as of List.map: it says nothing
    std::uint32_t gaps = 0;    ///< Domain::gaps when its state began
  };
  struct Domain {
    std::optional<TaskKey> current{};  ///< that runs, or ran last
    bool runs = false;
    std::uint32_t gaps = 1;  ///< from 1 on: times that events were missing
    std::uint64_t poll_begin_ns = 0;
  };
  struct Process {
    std::map<TaskKey, Entry> tasks{};
    std::map<std::int64_t, TaskContext> contexts{};
    Waiters waiters{};
    std::map<std::uint16_t, Domain> domains{};
    Counts counts{};

    std::uint64_t& count(const Task& task) {
      return counts.at(static_cast<std::size_t>(task.library)).at(static_cast<std::size_t>(task.state));
    }
  };
  /// Where an event was written.
  struct Place {
    ProcessIndex index;
    Process& process;
    std::uint16_t number;
    Domain& domain;
    std::uint64_t time_ns;
  };

  void use(const Event& event, const Batch& batch, const Registry& registry);
  void apply(const TaskEvent& event, const Place& place);
  void create(const TaskEvent& event, const Place& place);
  void run(const TaskKey& key, const Place& place);
  void suspend(Entry& entry, std::string_view operation, const Place& place);
  void stop(Entry& entry, const Place& place);
  void end(const TaskKey& key, const Place& place);
  void fail(const TaskEvent& event, const Place& place);
  void name(const TaskEvent& event, const Place& place);
  void name_by_place(const TaskEvent& event, const Place& place);
  void use_sample(const Event& event, const Batch& batch, const Registry& registry);
  void set_nameless(Entry& entry, bool is_nameless);
  void enter_context(const TaskEvent& event, const Place& place);
  void leave_context(const Place& place);
  void wait_for(std::int64_t object, const Place& place);
  void pass(std::int64_t object, const Place& place);
  void lose(ProcessIndex process, std::uint16_t domain);
  void end_process(ProcessIndex process, std::uint64_t time_ns);

  Entry* find_or_add(const TaskKey& key, const Place& place);
  static Entry* find(Process& process, const TaskKey& key);
  Entry* current(const Place& place);
  void set_state(Entry& entry, TaskState state, std::string_view operation, const Place& place);
  void report_interval(const Place& place, const Entry& entry, bool goes_on);
  static void stop_waiting(Process& process, Entry& entry);
  void make_room(ProcessIndex process);

  TaskObserver* observer_;
  Limits limits_;
  TaskEvents events_;
  std::map<ProcessIndex, Process> processes_;
  std::size_t tasks_ = 0, contexts_ = 0, domains_ = 0;  ///< of all processes
  std::size_t nameless_ = 0;                            ///< tasks
  std::size_t until_sweep_ = 0;
  std::uint64_t not_followed_ = 0;
};

}  // namespace rtev
