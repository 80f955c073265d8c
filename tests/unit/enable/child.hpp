// SPDX-License-Identifier: MIT
// A child process that does something and then waits, for tests of processes that change under who holds them.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <utility>

#include "base/unique_fd.hpp"

namespace rtev::enable {

/// Runs `first`. Runs `then` in go_on(). Then waits: the destructor kills it. It ends by itself if its parent ends.
class Child {
 public:
  explicit Child(const std::function<void()>& first, const std::function<void()>& then = [] {}) {
    auto [told, tell] = make_pipe();
    auto [done, reports] = make_pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      tell.reset();
      done.reset();
      first();
      report(reports);
      if (!wait_for(told)) ::_exit(0);
      then();
      report(reports);
      wait_for(told);
      ::_exit(0);
    }
    tell_ = std::move(tell);
    done_ = std::move(done);
    wait_for(done_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  /// Returns when `then` was run, or has replaced the program.
  void go_on() {
    report(tell_);
    wait_for(done_);
  }

 private:
  static std::pair<UniqueFd, UniqueFd> make_pipe() {
    std::array<int, 2> ends{-1, -1};
    [[maybe_unused]] const int result = ::pipe2(ends.data(), O_CLOEXEC);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  static void report(const UniqueFd& fd) { [[maybe_unused]] const ssize_t put = ::write(fd.get(), "x", 1); }
  /// False: the other side has ended.
  static bool wait_for(const UniqueFd& fd) {
    char byte = 0;
    return ::read(fd.get(), &byte, 1) == 1;
  }

  UniqueFd tell_, done_;
  pid_t pid_ = -1;
};

}  // namespace rtev::enable
