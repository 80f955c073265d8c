// SPDX-License-Identifier: MIT
// Writes to a descriptor until everything is written.
#pragma once

#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace rtev {

/// How much was written, and the errno that stopped it; 0 if everything was written.
struct Written {
  std::size_t bytes = 0;
  int code = 0;
};

/// Calls write_some(offset) until `size` bytes are written. It writes bytes from the offset on and returns what
/// write(2) returns. Waits if the descriptor is not ready.
template <typename WriteSome>
Written write_all(int fd, std::size_t size, WriteSome write_some) {
  Written written;
  while (written.bytes < size) {
    const ssize_t count = write_some(written.bytes);
    if (count >= 0) {
      written.bytes += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      written.code = errno;
      break;
    }
  }
  return written;
}

/// Truncates the last `bytes` written of a regular file, if the file ends there. If that fails, a reader sees a file
/// that is cut in the middle, as after a kill.
inline void cut_back(int fd, std::size_t bytes) {
  struct stat status{};
  if (bytes == 0 || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const off_t end = ::lseek(fd, 0, SEEK_CUR);
  if (end != status.st_size || end < static_cast<off_t>(bytes)) return;
  const off_t whole = end - static_cast<off_t>(bytes);
  if (::ftruncate(fd, whole) == 0) ::lseek(fd, whole, SEEK_SET);
}

}  // namespace rtev
