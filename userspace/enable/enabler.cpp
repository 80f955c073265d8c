// SPDX-License-Identifier: MIT
#include "enable/enabler.hpp"

#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/capabilities.hpp"
#include "base/child_end.hpp"
#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "base/restarts.hpp"
#include "enable/enable_messages.hpp"
#include "enable/supervisor.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"

namespace rtev::enable {

namespace {

/// How long the process may take to start, and to pause events at the end.
constexpr int start_timeout_ms = 10'000;
constexpr std::uint64_t end_timeout_ns = 4'000'000'000;

/// The first message says whether it could start.
[[noreturn]] void serve(int channel, const EnablerOptions& options) {
  ::prctl(PR_SET_NAME, "rtev-enabler");
  constexpr int nice = -20;  // a program runs for a moment only
  ::setpriority(PRIO_PROCESS, 0, nice);
  auto supervisor = Supervisor::create(channel, options);
  if (!supervisor) {
    const Error& error = supervisor.error();
    helper::send(channel,
                 encoded(EnableAnswer{.result = EnableResult::denied, .why = error.message(), .hint = error.hint}));
    ::_exit(1);
  }
  raise_file_limit();
  // To look into processes, to attach BPF programs, and to be their user where it is checked what they may do.
  keep_capabilities({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, CAP_CHECKPOINT_RESTORE, CAP_BPF,
                     CAP_PERFMON, CAP_SETUID, CAP_SETGID});
  {
    // Its destructor ends the worker, and takes its locks of the journal.
    Supervisor running = std::move(*supervisor);
    running.run();
  }
  ::_exit(0);
}

std::unexpected<Error> enabler_gone() {
  return std::unexpected(
      Error{.what = "cannot switch events on", .why = "the process that does it is gone", .hint = "start again"});
}

}  // namespace

Result<Enabler> Enabler::start(const EnablerOptions& options) {
  if (!has_capability(CAP_SYS_PTRACE))
    return std::unexpected(Error{.what = "cannot switch events on or off",
                                 .why = "CAP_SYS_PTRACE is missing",
                                 .hint = hint_for_capability("CAP_SYS_PTRACE", ::geteuid() == 0) +
                                         "\nhint: without it, rtev-bpf -- CMD starts a program with events on"});
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
  // A signal that ends the tracer is not for this process.
  while (::poll(&started, 1, start_timeout_ms) < 0 && errno == EINTR) {
  }
  auto first = helper::receive(channel->first.get(), true);
  if (!first) return enabler_gone();
  const auto answer = decoded<EnableAnswer>(*first);
  if (!answer) return enabler_gone();
  if (answer->result != EnableResult::done)
    return std::unexpected(Error{.what = "cannot switch events on", .why = answer->why, .hint = answer->hint});
  return Enabler(std::move(channel->first), end_of(pid));
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
  return helper::send(channel_.get(), encoded(request), wait == Wait::no) || errno != EAGAIN;
}

void Enabler::leave() {
  if (!channel_) return;
  ask({.task = Task::leave}, Wait::yes);
  // The guardian would pause them as soon as this end is closed.
  for (const std::uint64_t end_ns = monotonic_ns() + end_timeout_ns;;) {
    const std::uint64_t now = monotonic_ns();
    pollfd answers{.fd = channel_.get(), .events = POLLIN, .revents = 0};
    if (now >= end_ns || ::poll(&answers, 1, static_cast<int>((end_ns - now) / 1'000'000 + 1)) == 0) return;
    auto message = helper::receive(channel_.get(), true);
    if (!message && errno != EAGAIN) return;
    const auto answer = message ? decoded<EnableAnswer>(*message) : std::nullopt;
    if (answer && answer->task == Task::leave) return;
  }
}

Result<std::vector<EnableAnswer>> Enabler::take() {
  if (!channel_) return enabler_gone();
  std::vector<EnableAnswer> answers;
  while (true) {
    auto message = helper::receive(channel_.get(), true);
    if (!message && errno == EAGAIN) return answers;
    auto answer = message ? decoded<EnableAnswer>(*message) : std::nullopt;
    if (!answer) {
      // A socket whose other end is closed stays readable: epoll would wake the caller for ever.
      channel_.reset();
      if (answers.empty()) return enabler_gone();
      return answers;
    }
    if (answer->task == Task::restarted)
      count_restart(Part::enabler);
    else
      answers.push_back(std::move(*answer));
  }
}

}  // namespace rtev::enable
