// SPDX-License-Identifier: MIT
#include "enable/supervisor.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/capabilities.hpp"
#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/file_limit.hpp"
#include "base/system_log.hpp"
#include "enable/as_program.hpp"
#include "enable/enable_messages.hpp"
#include "enable/request_queue.hpp"
#include "enable/worker.hpp"
#include "inspect/enabled_list.hpp"

namespace rtev::enable {
namespace {

/// How long a worker may work on one process. More than a check of its ring's directory takes where that hangs, and
/// than its program takes to be read from a slow disk.
constexpr std::uint64_t work_timeout_ns = 3'000'000'000;
constexpr int check_interval_ms = 1000;

/// The same at the end, where other programs wait to be as they were.
constexpr std::uint64_t last_work_timeout_ns = 300'000'000;
constexpr int last_check_interval_ms = 50;

/// After its last answer a worker still watches the program, for two seconds.
constexpr std::uint64_t watch_timeout_ns = 3'000'000'000 + work_timeout_ns;

/// How long a worker may take to start.
constexpr int worker_start_timeout_ms = 10'000;

/// Before another start after those that failed, although they put back no hooks.
constexpr int start_pause_ms = 5000;

/// How long a worker may take to end once its socket is closed: longer than an attempt on a program takes, and than
/// removing files of rings does.
constexpr int end_timeout_ms = 1500;

/// How long programs may take to be as they were.
constexpr std::uint64_t finish_timeout_ns = 2'000'000'000;

/// How often workers are replaced within an hour. Each may be a process that hangs for as long as a program likes.
constexpr std::size_t max_replaced = 32;
constexpr std::uint64_t hour_ns = 3'600'000'000'000;

/// How often a worker looks whether a user may go on whose share of its time is used up.
constexpr int share_interval_ms = 50;

/// From so many programs whose events are on, those that have ended are looked for.
constexpr std::size_t first_check = 256;

/// How long a worker may take to end once it is killed, unless it hangs.
constexpr int kill_timeout_ms = 100;

EnableAnswer failure(const Error& error) {
  return {.result = EnableResult::denied, .why = error.message(), .hint = error.hint};
}

/// Of a program whose events are on.
EnableRequest keep_request(const EnableAnswer& answer) {
  return {
      .task = Task::keep, .pid = answer.pid, .start_ticks = answer.start_ticks, .user = answer.user, .id = answer.id};
}

EnableRequest take_back_request(const EnableRequest& keep) {
  EnableRequest request = keep;
  request.task = Task::take_back;
  return request;
}

/// Requests until the supervisor is gone.
void handle_requests(int channel, Worker& worker, const Progress& progress) {
  RequestQueue requests;
  bool is_to_go_on = false;
  while (true) {
    const auto [running, ended] = worker.event_fds();
    std::array<pollfd, 4> events{pollfd{.fd = channel, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = running, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = ended, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = worker.guardian_end_fd(), .events = 0, .revents = 0}};
    int timeout_ms = is_to_go_on ? 0 : requests.is_empty() ? -1 : share_interval_ms;
    if (const auto next = worker.next_step_ns(); next && timeout_ms != 0) {
      const std::uint64_t now = monotonic_ns();
      const auto step_ms = static_cast<int>((*next - std::min(*next, now)) / 1'000'000 + 1);
      timeout_ms = timeout_ms < 0 ? step_ms : std::min(timeout_ms, step_ms);
    }
    ::poll(events.data(), events.size(), timeout_ms);
    // Here, where nothing is half done: its successor finds what was prepared.
    if (events[3].revents != 0) end_without_guardian(progress);
    worker.step(monotonic_ns());
    for (const EnableRequest& request : worker.take_due(monotonic_ns())) requests.add_again(request);
    while (events[0].revents != 0) {
      auto message = helper::receive(channel, true);
      if (!message && errno == EAGAIN) break;
      const auto request = message ? decoded<EnableRequest>(*message) : std::nullopt;
      if (!request) return;
      if (request->task == Task::finish) {
        requests = {};
        worker.take(*request, monotonic_ns());
      } else {
        requests.add(*request);
      }
    }
    const auto request = requests.take([&](std::uint32_t user) { return worker.has_time_for(user, monotonic_ns()); });
    is_to_go_on = request.has_value();
    if (request) worker.take(*request, monotonic_ns());
  }
}

}  // namespace

Result<Guardian> Supervisor::start_guardian(int tracer, const EnablerOptions& options) {
  auto guardian = Guardian::start();
  if (!guardian || !options.pauses_at_end) return guardian;
  if (auto watching = guardian->watch(tracer); !watching) return std::unexpected(std::move(watching.error()));
  return guardian;
}

Result<Supervisor> Supervisor::create(int tracer, const EnablerOptions& options) {
  auto guardian = start_guardian(tracer, options);
  if (!guardian) return std::unexpected(std::move(guardian.error()));
  auto journal = Journal::open();
  if (!journal) return std::unexpected(std::move(journal.error()));
  child_places();
  auto progress = Progress::create();
  if (!progress) return std::unexpected(std::move(progress.error()));
  const JournalOwner own{.pid = ::getpid(),
                         .start_ticks = Procfs().stat(::getpid()).value_or(ProcessStat{}).start_ticks};
  return Supervisor(tracer, options, std::move(*journal), std::move(*guardian), std::move(*progress), own);
}

void Supervisor::run() {
  auto started = start_worker();
  // What a killed run left may have ended it.
  if (!started && start_next_worker(WorkerEnd::not_started)) started.emplace();
  helper::send(tracer_, encoded(started.value_or(failure({.what = "no answer of the worker process"}))));
  if (!started || started->result != EnableResult::done) return;
  has_started_ = true;
  while (true) {
    // Requests that do not fit into the worker's socket keep the tracer waiting.
    const short takes = queue_.empty() ? POLLIN : 0;
    pollfd tracer{.fd = tracer_, .events = takes, .revents = 0};
    if (!attend(&tracer)) return;
    if ((tracer.revents & POLLHUP) != 0 || ((tracer.revents & POLLIN) != 0 && !take_request())) break;
  }
  finish();
}

/// Waits for the worker, and for another descriptor, passes messages, and replaces the worker if it is gone or late. It
/// ends by itself if the guardian is gone. False if there is none any more.
bool Supervisor::attend(pollfd* other) {
  const short passes = queue_.empty() ? 0 : POLLOUT;
  pollfd worker{.fd = worker_.get(), .events = static_cast<short>(POLLIN | passes), .revents = 0};
  std::array<pollfd, 2> events{worker, other != nullptr ? *other : pollfd{.fd = -1, .events = 0, .revents = 0}};
  ::poll(events.data(), events.size(), timeout_ms());
  if (other != nullptr) other->revents = events[1].revents;
  const bool is_gone = events[0].revents != 0 && !pass_answers();
  const Progress::Work work = progress_.current();
  const bool is_late =
      work.pid != 0 && monotonic_ns() - work.since_ns > (is_finishing_ ? last_work_timeout_ns : work_timeout_ns);
  if ((is_gone || is_late) && !replace_worker(is_gone)) return false;
  pass_requests();
  for (const std::string& line : left_alone_.take_due(monotonic_ns())) log_notice(line);
  return true;
}

/// Events are off again, and files of rings removed, when this ends. What takes too long is left to the guardian, which
/// only pauses.
void Supervisor::finish() {
  if (!options_.pauses_at_end) return;
  const std::uint64_t end_ns = monotonic_ns() + finish_timeout_ns;
  asked_.clear();
  queue_.clear();
  is_finishing_ = true;
  ask({.task = Task::finish});
  for (const auto& [pid, keep] : ours_) ask(take_back_request(keep));
  order_queue();
  pass_requests();
  while (!asked_.empty() && monotonic_ns() < end_ns && attend(nullptr)) {
  }
}

/// What is on is left on, to another run. The worker could still switch on more: what it is at ends first.
void Supervisor::leave() {
  end_worker();
  progress_.reset();
  asked_.clear();
  queue_.clear();
  options_.pauses_at_end = false;
  if (guardian_.renew()) guardian_.leave();
  helper::send(tracer_, encoded(EnableAnswer{.task = Task::leave}));
  // What killed ones left is mended when another one starts. Nobody waits any more for programs that do not answer.
  silent_ = {};
  if (!journal_.left_to(own_).empty() && start_worker()) end_worker();
}

void Supervisor::ask(const EnableRequest& request) {
  asked_.insert_or_assign(request.pid, Asked{.request = request, .time_ns = monotonic_ns()});
  queue_.push_back(request.pid);
}

Supervisor::~Supervisor() {
  end_worker();
  for (const std::string& line : left_alone_.take_all()) log_notice(line);
}

void Supervisor::end_worker() {
  worker_.reset();
  pollfd ended{.fd = worker_process_.get(), .events = POLLIN, .revents = 0};
  if (worker_process_ && ::poll(&ended, 1, end_timeout_ms) == 0) abandon_worker();
}

/// What it says when it starts; nothing if it does not.
std::optional<EnableAnswer> Supervisor::start_worker() {
  auto channel = helper::make_channel();
  if (!channel) return failure(channel.error());
  const pid_t pid = ::fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    // Who waits for the end of these must not wait for a worker that hangs.
    ::close(tracer_);
    channel->first.reset();
    worker_process_.reset();
    work(channel->second.get());
  }
  worker_process_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  worker_ = std::move(channel->first);
  channel->second.reset();
  // Hooks that a killed run left are put back first, in processes that may let it wait.
  pollfd started{.fd = worker_.get(), .events = POLLIN, .revents = 0};
  ::poll(&started, 1, worker_start_timeout_ms);
  auto first = helper::receive(worker_.get(), true);
  return first ? decoded<EnableAnswer>(*first) : std::nullopt;
}

/// The worker process. Its first message says whether it could start.
void Supervisor::work(int channel) {
  const auto send = [&](EnableAnswer answer) {
    // It may have to wait until the tracer takes the answer.
    const Progress::Scope idle = progress_.idle();
    helper::send(channel, encoded(std::move(answer)));
  };
  auto programs = kernel::EnablePrograms::load();
  if (!programs) {
    send(failure(programs.error()));
    ::_exit(1);
  }
  Mended mended = mend_left_hooks(journal_, own_, silent_, progress_, mending_, is_finishing_);
  if (const auto& unanswered = mended.unanswered) {
    const Progress::Scope at_work = progress_.work_on(unanswered->pid, unanswered->start_ticks, unanswered->user);
    ::shutdown(channel, SHUT_RDWR);  // a thread that hangs keeps it open
    ::_exit(1);
  }
  send({});
  Worker worker(options_, std::move(*programs), std::move(journal_), std::move(guardian_),
                {.progress = progress_, .silent = silent_, .suspects = suspects_, .supervisor = own_},
                std::move(mended.tried), send);
  handle_requests(channel, worker, progress_);
  worker.end();
  ::_exit(0);
}

/// A worker that hangs does not end now, but runs no more code. Another one has ended when this returns: it writes
/// nothing after the guardian has put its hook back.
void Supervisor::abandon_worker() {
  ::syscall(SYS_pidfd_send_signal, worker_process_.get(), SIGKILL, nullptr, 0);
  pollfd ended{.fd = worker_process_.get(), .events = POLLIN, .revents = 0};
  ::poll(&ended, 1, kill_timeout_ms);
  pass_answers();  // its last ones
  worker_.reset();
  journal_.unlock_all();
}

/// `end`: of the last one. False if that was done too often.
bool Supervisor::start_next_worker(WorkerEnd end) {
  while (true) {
    abandon_worker();
    child_places().take_over();
    const Progress::Work work = progress_.current();
    if (work.pid != 0) {
      if (end == WorkerEnd::late) silent_.add(work);
      if (end == WorkerEnd::gone) silent_.add_end(work);
      if (end == WorkerEnd::not_started) silent_.add_mend_end(work);
    }
    progress_.reset();
    if (end == WorkerEnd::not_started && mending_ == Mending::none && !wait_to_start()) return false;
    mending_ = next_mending(mending_, end, work.pid != 0);
    end = WorkerEnd::not_started;
    const std::uint64_t now = monotonic_ns();
    std::erase_if(replaced_ns_, [now](std::uint64_t time_ns) { return now - time_ns > hour_ns; });
    if (replaced_ns_.size() >= max_replaced) return false;
    replaced_ns_.push_back(now);
    if (!guardian_.renew()) {
      auto guardian = start_guardian(tracer_, options_);
      if (!guardian) continue;
      guardian_ = std::move(*guardian);
    }
    const auto started = start_worker();
    if (started && started->result == EnableResult::done) return true;
  }
}

/// Whatever keeps workers from starting may pass. False if the tracer does not wait for that.
bool Supervisor::wait_to_start() const {
  pollfd tracer{.fd = tracer_, .events = POLLRDHUP, .revents = 0};
  return has_started_ && !is_finishing_ && ::poll(&tracer, 1, start_pause_ms) == 0;
}

/// False if that was done too often.
bool Supervisor::replace_worker(bool is_gone) {
  if (!start_next_worker(is_gone ? WorkerEnd::gone : WorkerEnd::late)) return false;
  helper::send(tracer_, encoded(EnableAnswer{.task = Task::restarted}));
  queue_.clear();
  for (const auto& [pid, asked] : asked_) queue_.push_back(pid);
  if (!is_finishing_) keep_ours();
  order_queue();
  return true;
}

void Supervisor::order_queue() {
  std::ranges::stable_sort(queue_, {}, [this](std::int32_t pid) { return silent_.rank(asked_.at(pid).request.user); });
}

/// A new worker does not know the programs whose events are on, nor does a new guardian.
void Supervisor::keep_ours() {
  for (const auto& [pid, request] : ours_)
    if (!asked_.contains(pid)) ask(request);
}

/// False if the tracer is gone.
bool Supervisor::take_request() {
  auto message = helper::receive(tracer_, true);
  if (!message) return errno == EAGAIN;
  const auto request = decoded<EnableRequest>(*message);
  if (!request) return false;
  request->task == Task::leave ? leave() : ask(*request);
  return true;
}

/// Sends the worker what fits into its socket.
void Supervisor::pass_requests() {
  for (; !queue_.empty(); queue_.pop_front()) {
    const auto asked = asked_.find(queue_.front());
    if (asked == asked_.end()) continue;
    EnableRequest request = asked->second.request;
    if (const auto refused = silent_.reason(request.pid, request.start_ticks, request.user)) {
      EnableAnswer answer{.task = request.task,
                          .pid = request.pid,
                          .start_ticks = request.start_ticks,
                          .id = request.id,
                          .result = refused->result,
                          .why = refused->why,
                          .hint = refused->hint};
      note_in_log(answer, request.user);
      if (request.task != Task::keep) helper::send(tracer_, encoded(std::move(answer)));
      asked_.erase(asked);
      continue;
    }
    const std::chrono::nanoseconds waited(monotonic_ns() - asked->second.time_ns);
    if (request.patience) request.patience = std::max(*request.patience - waited, std::chrono::nanoseconds(0));
    if (!helper::send(worker_.get(), encoded(request), true)) return;
  }
}

/// What was done to a program, or could not be, for those who look after the host. `user`: when it was found.
void Supervisor::note_in_log(const EnableAnswer& answer, std::uint32_t user) {
  constexpr std::array only_looked{Task::check, Task::finish, Task::keep};
  constexpr std::array nothing_done{EnableResult::nothing_to_do, EnableResult::gone, EnableResult::not_ocaml};
  if (std::ranges::find(only_looked, answer.task) != only_looked.end()) return;
  if (std::ranges::find(nothing_done, answer.result) != nothing_done.end()) return;
  if (answer.result == EnableResult::no_answer && !left_alone_.add(user, monotonic_ns())) return;
  const std::string_view off_or_on = answer.task == Task::enable ? "on" : "off";
  std::string text = fmt::format("events of {}/{} {}switched {}", escaped(answer.comm), answer.pid,
                                 is_good(answer.result) ? "" : "not ", off_or_on);
  if (!answer.why.empty()) text += ": " + escaped(answer.why);
  log_notice(text);
}

/// False if the worker is gone.
bool Supervisor::pass_answers() {
  while (auto message = helper::receive(worker_.get(), true)) {
    const auto answer = decoded<EnableAnswer>(*message);
    if (!answer) return false;
    if (answer->task != Task::keep) helper::send(tracer_, *message);
    const auto asked = asked_.find(answer->pid);
    note_in_log(*answer, asked == asked_.end() ? answer->user : asked->second.request.user);
    last_answer_ns_ = monotonic_ns();
    if (answer->harmed)
      add_suspect({.file = {answer->harmed->device, answer->harmed->inode}, .user = answer->harmed->user});
    if (answer->is_ours) {
      forget_ended();
      const EnableRequest& keep = ours_.insert_or_assign(answer->pid, keep_request(*answer)).first->second;
      // It came on during the last attempt.
      if (is_finishing_) ask(take_back_request(keep));
    }
    // The tracer may have asked for the same process meanwhile.
    if (!answer->is_correction && asked != asked_.end() && asked->second.request.task == answer->task &&
        asked->second.request.id == answer->id)
      asked_.erase(asked);
  }
  return errno == EAGAIN;
}

/// Of the programs whose events are on, when there are twice as many as the last time.
void Supervisor::forget_ended() {
  if (ours_.size() < next_check_) return;
  std::erase_if(ours_, [](const auto& entry) {
    const auto stat = Procfs().stat(entry.first);
    return !stat || stat->start_ticks != entry.second.start_ticks;
  });
  next_check_ = 2 * ours_.size() + first_check;
}

void Supervisor::add_suspect(const UsersProgram& suspect) {
  if (!suspects_.insert(suspect)) return;
  // Without the entry a later run tries the program again: this one need not fail for that.
  [[maybe_unused]] const auto noted = note_suspect(suspect);
}

/// An idle worker need not be checked.
int Supervisor::timeout_ms() const {
  if (is_finishing_) return last_check_interval_ms;
  const std::uint64_t now = monotonic_ns();
  if (!asked_.empty() || now - last_answer_ns_ <= watch_timeout_ns) return check_interval_ms;
  const auto next_line = left_alone_.next_ns();
  return next_line ? static_cast<int>((*next_line - std::min(*next_line, now)) / 1'000'000 + 1) : -1;
}

}  // namespace rtev::enable
