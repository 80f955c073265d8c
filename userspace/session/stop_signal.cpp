// SPDX-License-Identifier: MIT
#include "session/stop_signal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/reader_wait.hpp"
#include "base/terminal.hpp"
#include "session/command/command.hpp"

namespace rtev {
namespace {

/// Those that request an end come first; the others are caught for a command only, the last ones for one that the
/// terminal does not reach.
constexpr std::array caught_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};
constexpr std::size_t stop_signals = 3, command_signals = 6;

/// So many requests of processes to end (SIGINT, SIGTERM) are only the command's, which may ignore them.
constexpr int requests_to_command = 2;

/// After the request to end, how often it is checked that readers of our output take something, and how often in a row
/// they may not: 0.8 s.
constexpr timespec reader_check_interval{.tv_sec = 0, .tv_nsec = 50'000'000};
constexpr std::uint32_t max_reader_checks = 16;

/// A process that sends the same signal again within that, to us and to our process group, requests one end.
constexpr std::uint32_t same_request_ms = 200;

/// What the handler passes to take(): written and read as one piece.
struct Arrival {
  int number;
  bool from_terminal;
};

/// Of the tracer to end. Without padding, for compare_exchange.
struct Request {
  std::uint32_t ms;      ///< CLOCK_MONOTONIC, modulo 2^32
  std::uint16_t number;  ///< 0: none
  std::uint16_t from_terminal;
};

// Signal handlers reach nothing but statics.
std::atomic<int> arrivals = -1;
std::atomic<const Command*> accompanied = nullptr;
std::atomic<pid_t> owner = 0;  ///< children that were just forked have the handler, too
std::atomic<int> first_stop = 0;
std::atomic<timer_t> reader_timer = nullptr;
std::atomic<Request> first_request = Request{};
static_assert(std::atomic<Request>::is_always_lock_free);
std::atomic<int> requests_of_processes = 0;
std::array<struct sigaction, caught_signals.size()> previous_actions;
struct sigaction previous_pipe_action, previous_file_size_action, previous_timer_action;

bool requests_end(int signal_number) {
  return std::ranges::count(std::span(caught_signals).first(stop_signals), signal_number) != 0;
}

[[noreturn]] void exit_at_once(int signal_number, std::string_view message) {
  if (const Command* const command = accompanied) command->abandon();
  restore_terminal();
  pollfd messages{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&messages, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, message.data(), message.size());
  }
  ::_exit(exit_of_signal + signal_number);
}

/// Exits if an end was requested before.
void request_end(const Arrival& arrival) {
  const Request request{.ms = static_cast<std::uint32_t>(monotonic_ns() / 1'000'000),
                        .number = static_cast<std::uint16_t>(arrival.number),
                        .from_terminal = arrival.from_terminal};
  Request first{};
  if (!first_request.compare_exchange_strong(first, request)) {
    const bool typed_twice = first.from_terminal != 0 && arrival.from_terminal;
    if (first.number == request.number && !typed_twice && request.ms - first.ms < same_request_ms) return;
    exit_at_once(arrival.number, "\nrtev-bpf: exiting at once; output not yet written is lost\n");
  }
  const itimerspec often{.it_interval = reader_check_interval, .it_value = reader_check_interval};
  ::timer_settime(reader_timer, 0, &often, nullptr);
}

void on_signal(int signal_number, siginfo_t* info, void* /*context*/) {
  if (::getpid() != owner) return;
  const int saved_errno = errno;
  const Arrival arrival{.number = signal_number, .from_terminal = info->si_code == SI_KERNEL};
  const Command* command = accompanied;
  if (requests_end(signal_number)) {
    int none = 0;
    first_stop.compare_exchange_strong(none, signal_number);
    const bool is_ours = command == nullptr || arrival.from_terminal ||
                         (signal_number != SIGHUP && ++requests_of_processes > requests_to_command);
    if (is_ours) request_end(arrival);
  }
  // A pipe holds thousands. What does not fit is dropped, as the kernel does with signals that are already pending.
  [[maybe_unused]] const ssize_t put = ::write(arrivals, &arrival, sizeof arrival);
  errno = saved_errno;
}

/// Whoever reads our output must not be able to keep us from ending.
void on_reader_timer(int /*signal_number*/) {
  const int saved_errno = errno;
  if (ReaderWait::check() >= max_reader_checks)
    exit_at_once(first_stop, "\nrtev-bpf: exiting, because the reader of the output takes nothing; the rest is lost\n");
  errno = saved_errno;
}

/// Shells ignore SIGINT for what scripts start in the background; perf and bpftrace end by it all the same.
void catch_signal(std::size_t index) {
  const bool is_overruled = caught_signals.at(index) == SIGINT || caught_signals.at(index) == SIGTERM;
  if (previous_actions.at(index).sa_handler == SIG_IGN && !is_overruled) return;
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(caught_signals.at(index), &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
  }
  arrivals = ends[1];
  accompanied = nullptr;
  owner = ::getpid();
  first_stop = 0;
  first_request = Request{};
  requests_of_processes = 0;
  for (std::size_t i = 0; i < caught_signals.size(); ++i) {
    ::sigaction(caught_signals[i], nullptr, &previous_actions[i]);
    if (i < stop_signals) catch_signal(i);
  }
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &previous_pipe_action);
  ::sigaction(SIGXFSZ, &ignore, &previous_file_size_action);

  struct sigaction check{};
  check.sa_handler = on_reader_timer;
  check.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &check, &previous_timer_action);
  sigevent raise_alarm{};
  raise_alarm.sigev_notify = SIGEV_SIGNAL;
  raise_alarm.sigev_signo = SIGALRM;
  timer_t timer = nullptr;
  ::timer_create(CLOCK_MONOTONIC, &raise_alarm, &timer);
  reader_timer = timer;
}

void StopSignal::accompany(const Command& command) {
  accompanied = &command;
  const std::size_t caught = command.has_own_session() ? caught_signals.size() : command_signals;
  for (std::size_t i = stop_signals; i < caught; ++i) catch_signal(i);
}

void StopSignal::restore_actions() {
  if (owner == 0) return;
  for (std::size_t i = 0; i < caught_signals.size(); ++i) ::sigaction(caught_signals[i], &previous_actions[i], nullptr);
  ::sigaction(SIGPIPE, &previous_pipe_action, nullptr);
  ::sigaction(SIGXFSZ, &previous_file_size_action, nullptr);
  ::sigaction(SIGALRM, &previous_timer_action, nullptr);
}

StopSignal::~StopSignal() {
  ::timer_delete(reader_timer);
  restore_actions();
  owner = 0;
  arrivals = -1;
  accompanied = nullptr;
}

int StopSignal::take() {
  Arrival arrival{};
  if (::read(read_end_.get(), &arrival, sizeof arrival) != sizeof arrival) return 0;
  from_terminal_ = arrival.from_terminal;
  return arrival.number;
}

bool StopSignal::leaves_command() const {
  return requests_of_processes > requests_to_command;
}

int StopSignal::received() const {
  return first_stop;
}

}  // namespace rtev
