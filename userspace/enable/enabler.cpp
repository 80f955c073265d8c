// SPDX-License-Identifier: MIT
#include "enable/enabler.hpp"

#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/capabilities.hpp"
#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "enable/enabled_list.hpp"
#include "enable/worker.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"

namespace rtev::enable {

// Where the archive looks for them: not in an unnamed namespace.
template <typename Archive>
static void fields(Archive& archive, EnableRequest& request) {
  std::optional<std::int64_t> patience;
  if (request.patience) patience = request.patience->count();
  archive(request.task, request.pid, request.start_ticks, request.id, patience);
  if (patience) request.patience = std::chrono::nanoseconds(*patience);
}
template <typename Archive>
static void fields(Archive& archive, Requirement& requirement) {
  archive(requirement.result, requirement.what, requirement.is_met, requirement.found, requirement.hint);
}
template <typename Archive>
static void fields(Archive& archive, EnableAnswer& answer) {
  archive(answer.task, answer.pid, answer.start_ticks, answer.id, answer.comm, answer.result, answer.is_correction,
          answer.why, answer.hint, answer.took_ns, answer.requirements);
}

namespace {

using helper::Message;
using helper::Reader;
using helper::Writer;

/// How long the process may take to start, and to pause events at the end.
constexpr int start_timeout_ms = 10'000;
constexpr std::uint64_t end_timeout_ns = 1'500'000'000;

bool send_answer(int channel, EnableAnswer answer) {
  Message message;
  Writer{message}(answer);
  return helper::send(channel, message);
}

/// Requests until the tracer is gone.
void handle_requests(int channel, Worker& worker) {
  while (true) {
    std::array<pollfd, 2> events{pollfd{.fd = channel, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = worker.event_fd(), .events = POLLIN, .revents = 0}};
    int timeout_ms = -1;
    if (const auto next = worker.next_step_ns()) {
      const std::uint64_t now = monotonic_ns();
      timeout_ms = static_cast<int>((*next - std::min(*next, now)) / 1'000'000 + 1);
    }
    ::poll(events.data(), events.size(), timeout_ms);
    worker.step(monotonic_ns());
    if (events[0].revents == 0) continue;
    auto message = helper::receive(channel, true);
    if (!message && errno == EAGAIN) continue;
    if (!message) return;
    EnableRequest request;
    Reader reader(*message);
    reader(request);
    if (!reader.is_complete()) return;
    worker.take(request, monotonic_ns());
  }
}

/// The first message says whether it could start.
[[noreturn]] void serve(int channel, const EnablerOptions& options) {
  ::prctl(PR_SET_NAME, "rtev-enabler");
  constexpr int nice = -20;  // a program runs for a moment only
  ::setpriority(PRIO_PROCESS, 0, nice);
  const auto fail = [&](const Error& error) {
    send_answer(channel, {.result = EnableResult::denied, .why = error.message(), .hint = error.hint});
    ::_exit(1);
  };
  auto guarded = Journal::open();
  if (!guarded) fail(guarded.error());
  auto guardian = Guardian::start(std::move(*guarded));
  if (!guardian) fail(guardian.error());
  if (options.pauses_at_end) {
    if (auto watching = guardian->watch(channel); !watching) fail(watching.error());
  }
  raise_file_limit();
  auto journal = Journal::open();
  if (!journal) fail(journal.error());
  auto programs = kernel::EnablePrograms::load();
  if (!programs) fail(programs.error());
  // To look into processes, to attach BPF programs, and to be their user where it is checked what they may do.
  keep_capabilities(
      {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE, CAP_BPF, CAP_PERFMON, CAP_SETUID, CAP_SETGID});
  mend_left_hooks(*journal);
  forget_ended(Procfs());
  Worker worker(options, std::move(*programs), std::move(*journal), std::move(*guardian),
                [channel](EnableAnswer answer) { send_answer(channel, std::move(answer)); });
  send_answer(channel, {});
  handle_requests(channel, worker);
  ::_exit(0);
}

std::unexpected<Error> is_gone() {
  return std::unexpected(
      Error{.what = "cannot switch events on", .why = "the process that does it is gone", .hint = "start again"});
}

}  // namespace

Result<Enabler> Enabler::start(const EnablerOptions& options) {
  auto channel = helper::make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start the process that switches events on");
  if (pid == 0) {
    helper::leave_tracer(channel->second.get());
    serve(channel->second.get(), options);
  }
  channel->second.reset();
  // Hooks that a killed run left are put back first, in processes that may let it wait.
  pollfd started{.fd = channel->first.get(), .events = POLLIN, .revents = 0};
  ::poll(&started, 1, start_timeout_ms);
  auto first = helper::receive(channel->first.get(), true);
  if (!first) return is_gone();
  EnableAnswer answer;
  Reader reader(*first);
  reader(answer);
  if (!reader.is_complete()) return is_gone();
  if (answer.result != EnableResult::done)
    return std::unexpected(Error{.what = "cannot switch events on", .why = answer.why, .hint = answer.hint});
  return Enabler(std::move(channel->first));
}

Enabler::~Enabler() {
  if (!channel_) return;
  ::shutdown(channel_.get(), SHUT_WR);
  // The other end is closed when both processes are done.
  for (const std::uint64_t end_ns = monotonic_ns() + end_timeout_ns;;) {
    const std::uint64_t now = monotonic_ns();
    pollfd ended{.fd = channel_.get(), .events = POLLIN, .revents = 0};
    if (now >= end_ns || ::poll(&ended, 1, static_cast<int>((end_ns - now) / 1'000'000 + 1)) == 0) return;
    if (!helper::receive(channel_.get(), true) && errno != EAGAIN) return;
  }
}

bool Enabler::ask(const EnableRequest& request, Wait wait) {
  Message message;
  EnableRequest copy = request;
  Writer{message}(copy);
  return helper::send(channel_.get(), message, wait == Wait::no) || errno != EAGAIN;
}

Result<std::vector<EnableAnswer>> Enabler::take() {
  if (!channel_) return is_gone();
  std::vector<EnableAnswer> answers;
  while (true) {
    auto message = helper::receive(channel_.get(), true);
    if (!message && errno == EAGAIN) return answers;
    EnableAnswer answer;
    if (message) {
      Reader reader(*message);
      reader(answer);
      if (!reader.is_complete()) message.reset();
    }
    if (!message) {
      // Closed, so that nobody is woken for it again.
      channel_.reset();
      if (answers.empty()) return is_gone();
      return answers;
    }
    answers.push_back(std::move(answer));
  }
}

}  // namespace rtev::enable
