// SPDX-License-Identifier: MIT
#include "helper/process_queries.hpp"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/background_close.hpp"
#include "base/clock.hpp"
#include "base/restarts.hpp"
#include "helper/channel.hpp"

namespace rtev::helper {
namespace {

/// If more time than this passes between two calls of process(), the tracer or the whole host stood still, and with it
/// the workers: only so much counts.
constexpr std::uint64_t max_step_ns = 100'000'000;

/// A query that its worker has not even taken is given more time, this many times: the host is overloaded.
constexpr std::uint64_t max_untaken_timeouts = 4;

/// Whether messages that were sent wait for the other end.
bool has_untaken(const UniqueFd& channel) {
  int bytes = 0;
  return ::ioctl(channel.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/// How long ask_once() waits.
constexpr std::uint64_t ask_once_timeout_ns = 500'000'000;

}  // namespace

HelperQueries::HelperQueries(const HelperProcess& helper, Priority priority, const Limits& limits, TimedTasks* tasks)
    : helper_(helper), priority_(priority), limits_(limits), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (tasks != nullptr) processing_.emplace(*tasks);
  add_to_epoll(asked_.get());
  // Before they are needed: the shortest programs end while a worker starts, and no process of the host can fork while
  // the kernel waits to attach a uprobe.
  while (workers_.size() < limits_.workers && start_worker() != nullptr) {
  }
}

HelperQueries::~HelperQueries() = default;

bool HelperQueries::add_to_epoll(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void HelperQueries::ask(ProcessQuery query, std::uint32_t user, Answer answer) {
  User& asked = users_.try_emplace(user, User{.share = limits_.share_of_user}).first->second;
  const std::int32_t pid = query.pid;
  std::deque<Job>& jobs = asked.waiting[pid];
  if (jobs.size() >= limits_.waiting_of_process || asked.jobs >= limits_.waiting_of_user) {
    if (jobs.empty()) asked.waiting.erase(pid);
    forget_if_unused(user);
    answers_.emplace_back(std::move(answer), ProcessView());
  } else {
    jobs.push_back({.query = std::move(query), .answer = std::move(answer)});
    ++asked.jobs;
    start_jobs();
    if (processing_) processing_->at(next_deadline_ns());
  }
  if (!answers_.empty()) asked_.signal();
}

void HelperQueries::process(std::uint64_t now_ns) {
  // Asked once, not for each worker: this is called with each look at the rings.
  pollfd ready{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  const bool any_ready = ::poll(&ready, 1, 0) != 0;
  if (any_ready) asked_.clear();
  const std::uint64_t step = std::min(now_ns - std::min(now_ns, processed_ns_), max_step_ns);
  processed_ns_ = now_ns;
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const auto current = worker++;
    if (any_ready && !receive(*current)) {
      // It ends, it crashed, or it cannot be understood.
      if (current->answer) answers_.emplace_back(std::move(*current->answer), ProcessView{.no_answer = true});
      end_work(*current);
      workers_.erase(current);
      start_worker();
    } else if (current->answer) {
      current->left_ns -= std::min(current->left_ns, step);
      if (current->left_ns > 0) continue;
      if (current->untaken_ns < max_untaken_timeouts * limits_.timeout_ns && has_untaken(current->channel)) {
        current->left_ns = max_step_ns;
        current->untaken_ns += max_step_ns;
      } else {
        leave_behind(current);
      }
    }
  }
  std::erase_if(left_behind_, [&](Worker& worker) {
    if (!any_ready || (!helper::receive(worker.channel.get(), true) && errno == EAGAIN)) return false;
    --users_.at(worker.user).left_behind;
    forget_if_unused(worker.user);
    return true;
  });
  std::erase_if(users_, [this](const auto& entry) { return is_unused(entry.second); });
  start_jobs();
  if (processing_) processing_->at(next_deadline_ns());
  for (auto& [answer, view] : std::exchange(answers_, {})) answer(std::move(view));
}

std::optional<std::uint64_t> HelperQueries::next_deadline_ns() const {
  std::optional<std::uint64_t> next;
  for (const Worker& worker : workers_) {
    if (!worker.answer) continue;
    const std::uint64_t due = processed_ns_ + std::min(worker.left_ns, max_step_ns);
    next = std::min(next.value_or(due), due);
  }
  for (const auto& [id, user] : users_)
    if (user.jobs > 0 && is_waiting_for_share(user)) next = std::min(next.value_or(forever), user.share.next_ns());
  return next;
}

bool HelperQueries::is_idle() const {
  return answers_.empty() &&
         std::ranges::none_of(workers_, [](const Worker& worker) { return worker.answer.has_value(); }) &&
         std::ranges::all_of(users_, [](const auto& entry) { return entry.second.jobs == 0; });
}

bool HelperQueries::may_work(const User& user) const {
  if (user.jobs == 0) return false;
  return is_given_up(user) || (user.workers < limits_.workers_of_user && !is_waiting_for_share(user));
}

bool HelperQueries::is_waiting_for_share(const User& user) const {
  return priority_ == Priority::lowered && !user.share.has_left(processed_ns_);
}

bool HelperQueries::is_given_up(const User& user) const {
  return user.left_behind >= 2 * limits_.left_behind_of_user || left_behind_.size() >= limits_.left_behind;
}

/// Gives each idle worker a job: of the next user who has one, and of the next of his processes.
void HelperQueries::start_jobs() {
  while (true) {
    auto next = std::find_if(users_.upper_bound(last_user_), users_.end(),
                             [this](const auto& entry) { return may_work(entry.second); });
    if (next == users_.end())
      next = std::ranges::find_if(users_, [this](const auto& entry) { return may_work(entry.second); });
    if (next == users_.end()) return;
    auto& [id, user] = *next;
    Worker* const worker = idle_worker();
    if (is_given_up(user) || workers_.empty()) {
      answers_.emplace_back(next_job(user).answer, ProcessView{.no_answer = true});
      asked_.signal();
      continue;
    }
    if (worker == nullptr) return;
    last_user_ = id;
    Job job = next_job(user);
    job.query.careful = user.left_behind >= limits_.left_behind_of_user;
    Priority priority =
        priority_ != Priority::real_time || user.share.has_left(processed_ns_) ? priority_ : Priority::raised;
    Message message;
    Writer{message}(job.query, priority);
    worker->user = id;
    worker->answer = std::move(job.answer);
    worker->left_ns = limits_.timeout_ns;
    worker->untaken_ns = 0;
    ++user.workers;
    // If the worker is gone, process() finds its channel closed.
    [[maybe_unused]] const bool sent = send(worker->channel.get(), message);
  }
}

HelperQueries::Worker* HelperQueries::idle_worker() {
  const auto idle = std::ranges::find_if(workers_, [](const Worker& worker) { return !worker.answer; });
  if (idle != workers_.end()) return &*idle;
  return workers_.size() < limits_.workers ? start_worker() : nullptr;
}

HelperQueries::Worker* HelperQueries::start_worker() {
  auto channel = helper_.start_worker(priority_);
  if (!channel || !add_to_epoll(channel->get())) return nullptr;
  return &workers_.emplace_back(Worker{.channel = std::move(*channel)});
}

HelperQueries::Job HelperQueries::next_job(User& user) {
  auto process = user.waiting.upper_bound(user.last_process);
  if (process == user.waiting.end()) process = user.waiting.begin();
  user.last_process = process->first;
  Job job = std::move(process->second.front());
  process->second.pop_front();
  if (process->second.empty()) user.waiting.erase(process);
  --user.jobs;
  return job;
}

/// Takes the answer of a worker, if there is one. False if the worker cannot be used any more.
bool HelperQueries::receive(Worker& worker) {
  auto message = helper::receive(worker.channel.get(), true);
  if (!message && errno == EAGAIN) return true;
  if (!message) {
    count_restart(Part::helper);
    return false;
  }
  for (UniqueFd& fd : message->fds) fd = UniqueFd(fd.release(), close_in_background);
  ProcessView view;
  std::uint64_t cpu_ns = 0;
  bool ends = false;
  Reader reader(*message);
  reader(view, cpu_ns, ends);
  if (!reader.is_complete() || !worker.answer) return false;
  answers_.emplace_back(std::move(*worker.answer), std::move(view));
  users_.at(worker.user).share.use(cpu_ns, processed_ns_);
  end_work(worker);
  return !ends;
}

void HelperQueries::end_work(Worker& worker) {
  if (!worker.answer) return;
  worker.answer.reset();
  --users_.at(worker.user).workers;
  forget_if_unused(worker.user);
}

void HelperQueries::leave_behind(std::list<Worker>::iterator worker) {
  count_restart(Part::helper);
  ++users_.at(worker->user).left_behind;
  answers_.emplace_back(std::move(*worker->answer), ProcessView{.no_answer = true});
  end_work(*worker);
  left_behind_.splice(left_behind_.end(), workers_, worker);
}

void HelperQueries::forget_if_unused(std::uint32_t user) {
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  if (is_unused(found->second)) users_.erase(found);
}

bool HelperQueries::is_unused(const User& user) const {
  return user.jobs == 0 && user.workers == 0 && user.left_behind == 0 && user.share.is_unused(processed_ns_);
}

HelperQueries::Limits limits_for_code() {
  constexpr std::uint64_t part_of_a_cpu = 4, at_once_ns = 500'000'000;
  return {// Their CPU time is limited: more passes where other programs have the CPUs.
          .timeout_ns = 10'000'000'000,
          .share_of_user{part_of_a_cpu, at_once_ns},
          .workers = 3,
          .workers_of_user = 1,
          // Each takes memory for the names of all files that are known.
          .waiting_of_user = 256};
}

std::optional<ProcessView> ask_once(const HelperProcess& helper, ProcessQuery query) {
  const auto worker = helper.start_worker(Priority::raised);
  if (!worker) return std::nullopt;
  Message message;
  Priority priority = Priority::raised;
  Writer{message}(query, priority);
  if (!send(worker->get(), message)) return std::nullopt;
  pollfd answered{.fd = worker->get(), .events = POLLIN, .revents = 0};
  // Signals may come more often than that.
  const std::uint64_t deadline_ns = monotonic_ns() + ask_once_timeout_ns;
  for (std::uint64_t now = monotonic_ns(); now < deadline_ns; now = monotonic_ns()) {
    const auto left_ms = static_cast<int>((deadline_ns - now) / 1'000'000 + 1);
    if (::poll(&answered, 1, left_ms) >= 0 || errno != EINTR) break;
  }
  auto answer = receive(worker->get(), true);
  if (!answer) return std::nullopt;
  ProcessView view;
  std::uint64_t cpu_ns = 0;
  bool ends = false;
  Reader reader(*answer);
  reader(view, cpu_ns, ends);
  return reader.is_complete() ? std::optional(std::move(view)) : std::nullopt;
}

}  // namespace rtev::helper
