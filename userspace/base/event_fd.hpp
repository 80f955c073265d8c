// SPDX-License-Identifier: MIT
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/unique_fd.hpp"

namespace rtev {

/// A flag that epoll can wait for. Thread-safe.
class EventFd {
 public:
  EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  int get() const { return fd_.get(); }
  /// Makes the descriptor readable.
  void signal() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(fd_.get(), &one, sizeof one);
  }
  void clear() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  UniqueFd fd_;
};

}  // namespace rtev
