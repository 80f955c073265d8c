// SPDX-License-Identifier: MIT
#include "live/ready.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/unique_fd.hpp"

namespace rtev::test {

void start_ready(std::optional<Process>& process, Command command) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  command.keep_fd = theirs.get();
  command.env["RTEV_READY_FD"] = std::to_string(theirs.get());
  process.emplace(command);
  theirs.reset();

  pollfd fd{ours.get(), POLLIN, 0};
  std::array<char, 6> word{};
  const auto limit = static_cast<int>(std::chrono::milliseconds(wait_timeout).count());
  if (::poll(&fd, 1, limit) > 0 && ::read(fd.fd, word.data(), word.size()) == std::ssize(word)) return;
  process->signal(SIGKILL);
  throw std::runtime_error("rtev-bpf did not get ready: " + process->wait().err);
}

}  // namespace rtev::test
