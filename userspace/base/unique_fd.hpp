// SPDX-License-Identifier: MIT
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rtev {

/// Owns a file descriptor.
class UniqueFd {
 public:
  using Close = void (*)(int fd);
  static void close_now(int fd) { ::close(fd); }

  UniqueFd() = default;
  /// `close` is called with the descriptor in the end.
  explicit UniqueFd(int fd, Close close = close_now) : fd_(fd), close_(close) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()), close_(other.close_) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this == &other) return *this;
    reset(other.release());
    close_ = other.close_;
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) close_(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
  Close close_ = close_now;
};

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

/// Owns a memory mapping.
struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* begin) const { ::munmap(begin, bytes); }
};
using MemoryMap = std::unique_ptr<std::byte, Unmap>;

}  // namespace rtev
