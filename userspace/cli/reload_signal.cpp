// SPDX-License-Identifier: MIT
#include "cli/reload_signal.hpp"

#include <atomic>
#include <cerrno>

namespace rtev::cli {
namespace {

// A handler reaches nothing but statics.
std::atomic<const EventFd*> hangup = nullptr;

void on_hangup(int /*signal_number*/) {
  const int saved_errno = errno;
  if (const EventFd* const event = hangup) event->signal();
  errno = saved_errno;
}

}  // namespace

void ReloadSignal::catch_it() {
  hangup = &event_;
  struct sigaction action{};
  action.sa_handler = on_hangup;
  action.sa_flags = SA_RESTART;
  is_caught_ = ::sigaction(SIGHUP, &action, &previous_) == 0;
}

ReloadSignal::~ReloadSignal() {
  if (is_caught_) ::sigaction(SIGHUP, &previous_, nullptr);
  hangup = nullptr;
}

}  // namespace rtev::cli
