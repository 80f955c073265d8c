// SPDX-License-Identifier: MIT
#include "load/stop.hpp"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>

namespace rtev::load {
namespace {

constexpr std::array stop_signals{SIGINT, SIGTERM, SIGHUP};

/// A futex, because a signal handler may set it and wake sleepers.
std::atomic<std::uint32_t> stopped = 0;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof stopped == sizeof(std::uint32_t));

long futex(int operation, std::uint32_t value, const timespec* until) {
  return ::syscall(SYS_futex, &stopped, operation | FUTEX_PRIVATE_FLAG, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void on_signal(int) {
  const int saved_errno = errno;
  request_stop();
  errno = saved_errno;
}

sigset_t stop_signal_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : stop_signals) sigaddset(&set, number);
  return set;
}

}  // namespace

void catch_stop_signals() {
  for (const int number : stop_signals) {
    struct sigaction action{};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
  ::signal(SIGPIPE, SIG_IGN);
}

sigset_t block_stop_signals() {
  const sigset_t set = stop_signal_set();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  return before;
}

void unblock_stop_signals() {
  const sigset_t set = stop_signal_set();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool stop_requested() {
  return stopped.load(std::memory_order_relaxed) != 0;
}

void request_stop() {
  stopped = 1;
  futex(FUTEX_WAKE, INT_MAX, nullptr);
}

void sleep_until(std::uint64_t time_ns) {
  constexpr std::uint64_t second = 1'000'000'000;
  const timespec until{.tv_sec = static_cast<time_t>(time_ns / second), .tv_nsec = static_cast<long>(time_ns % second)};
  while (!stop_requested()) {
    if (futex(FUTEX_WAIT_BITSET, 0, time_ns == never ? nullptr : &until) != 0 && errno == ETIMEDOUT) return;
  }
}

}  // namespace rtev::load
