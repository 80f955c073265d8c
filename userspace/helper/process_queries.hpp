// SPDX-License-Identifier: MIT
// Queries about processes, which are answered in the background.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/cpu_share.hpp"
#include "base/timed_tasks.hpp"
#include "helper/helper_process.hpp"
#include "inspect/process_view.hpp"

namespace rtev {

/// Whoever asks about processes. Tests answer by themselves.
class ProcessQueries {
 public:
  virtual ~ProcessQueries() = default;

  using Answer = std::function<void(ProcessView)>;
  /// Calls `answer` once, later, on the same thread. `user`: who runs the process. Users take turns, and so do the
  /// processes of a user.
  virtual void ask(ProcessQuery query, std::uint32_t user, Answer answer) = 0;
  /// Readable (epoll) when there is something for process() to do.
  virtual int event_fd() const = 0;
  /// Delivers answers.
  virtual void process(std::uint64_t now_ns) = 0;
  /// When process() has something to do, as far as only time decides.
  virtual std::optional<std::uint64_t> next_deadline_ns() const = 0;
  /// True if all queries are answered.
  virtual bool is_idle() const = 0;
};

namespace helper {

/// Has workers of the helper process answer queries. A worker that does not answer in time is left behind (later, if it
/// has not taken the query: then it does not hang, but gets no CPU), and the
/// query is answered with ProcessView::no_answer. A user with too many such workers gets careful answers only
/// (Procfs::set_careful), and at twice that number none, until the workers return. A user who took too much CPU time is
/// not answered in real time, and not by lowered workers: those are for others then. One thread.
class HelperQueries final : public ProcessQueries {
 public:
  struct Limits {
    std::uint64_t timeout_ns = 2'000'000'000;  ///< of a query
    /// CPU time of real-time and lowered workers: further queries are only raised, or wait.
    CpuShare share_of_user{2, 100'000'000};
    std::size_t workers = 4;
    std::size_t workers_of_user = 2;        ///< that work for one user at the same time
    std::size_t left_behind_of_user = 2;    ///< workers
    std::size_t left_behind = 64;           ///< over all users
    std::size_t waiting_of_process = 16;    ///< queries; further ones are answered at once, with nothing
    std::size_t waiting_of_user = 1 << 14;  ///< likewise
  };

  /// Both must outlive it. `tasks`: of the loop that calls process(), if it does not ask for next_deadline_ns().
  HelperQueries(const HelperProcess& helper, Priority priority, const Limits& limits, TimedTasks* tasks = nullptr);
  HelperQueries(const HelperProcess& helper, Priority priority, TimedTasks* tasks = nullptr)
      : HelperQueries(helper, priority, Limits(), tasks) {}
  ~HelperQueries() override;

  void ask(ProcessQuery query, std::uint32_t user, Answer answer) override;
  int event_fd() const override { return epoll_.get(); }
  void process(std::uint64_t now_ns) override;
  std::optional<std::uint64_t> next_deadline_ns() const override;
  bool is_idle() const override;

 private:
  struct Job {
    ProcessQuery query;
    Answer answer;
  };
  struct User {
    CpuShare share;
    std::map<std::int32_t, std::deque<Job>> waiting{};  ///< by process
    std::size_t jobs = 0;                               ///< in `waiting`
    std::size_t workers = 0;                            ///< at work
    std::size_t left_behind = 0;                        ///< workers
    std::int32_t last_process = 0;                      ///< whose turn it was
  };
  struct Worker {
    UniqueFd channel;
    std::uint32_t user = 0;
    std::optional<Answer> answer{};  ///< while it works
    std::uint64_t left_ns = 0;       ///< of its time
    std::uint64_t untaken_ns = 0;    ///< more time that it got because it had not taken the query
  };

  void start_jobs();
  Worker* idle_worker();
  Worker* start_worker();
  bool may_work(const User& user) const;
  bool is_waiting_for_share(const User& user) const;
  bool is_given_up(const User& user) const;
  Job next_job(User& user);
  bool receive(Worker& worker);
  void leave_behind(std::list<Worker>::iterator worker);
  void end_work(Worker& worker);
  bool is_unused(const User& user) const;
  void forget_if_unused(std::uint32_t user);
  bool add_to_epoll(int fd);

  const HelperProcess& helper_;
  Priority priority_;
  Limits limits_;
  UniqueFd epoll_;
  EventFd asked_;
  std::map<std::uint32_t, User> users_;
  std::uint32_t last_user_ = 0;  ///< whose turn it was
  std::list<Worker> workers_;
  std::list<Worker> left_behind_;
  std::vector<std::pair<Answer, ProcessView>> answers_;  ///< to be delivered
  std::uint64_t processed_ns_ = 0;
  std::optional<TimedTask> processing_;
};

/// For queries about the code of processes, which may take a long time: by workers of low priority. Of their CPU time a
/// user has a quarter of a CPU.
HelperQueries::Limits limits_for_code();

/// Has a worker of its own answer one query. Waits for that, but not for long: nothing if it takes too long.
std::optional<ProcessView> ask_once(const HelperProcess& helper, ProcessQuery query);

}  // namespace helper
}  // namespace rtev
