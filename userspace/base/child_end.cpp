// SPDX-License-Identifier: MIT
#include "base/child_end.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rtev {

UniqueFd end_of(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

void await_end(pid_t pid) {
  if (pid <= 0) return;
  constexpr int timeout_ms = 100;
  const UniqueFd process = end_of(pid);
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  ::poll(&ended, 1, timeout_ms);
  ::waitpid(pid, nullptr, WNOHANG);
}

}  // namespace rtev
