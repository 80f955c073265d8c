// SPDX-License-Identifier: MIT
#include "cli/agent/background.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

int Background::run(const std::function<int(Background& background)>& work) {
  constexpr const char* what = "cannot go on in the background";
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cli::report(errno_error(errno, what).error());
  const UniqueFd reads(ends[0]);
  UniqueFd writes(ends[1]);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return cli::report(errno_error(errno, what).error());
  if (pid == 0) {
    // The service manager becomes the parent, which wants to know about the end.
    if (const pid_t child = ::fork(); child != 0) ::_exit(child < 0 ? exit_failure : exit_ok);
    Background background(std::move(writes));
    const int status = work(background);
    background.report(status);
    return status;
  }
  writes.reset();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  unsigned char result = 0;
  ssize_t got = 0;
  while ((got = ::read(reads.get(), &result, 1)) < 0 && errno == EINTR) {
  }
  return got == 1 ? result : exit_failure;
}

void Background::report(int status) {
  if (!waits_) return;
  const auto byte = static_cast<unsigned char>(status);
  [[maybe_unused]] const ssize_t put = ::write(waits_.get(), &byte, 1);
  waits_.reset();
}

}  // namespace rtev::cli
