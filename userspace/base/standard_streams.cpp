// SPDX-License-Identifier: MIT
#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace rtev {

void reserve_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is this one. For CMD it is closed, as it was for this process.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_PATH | O_CLOEXEC);
  }
}

}  // namespace rtev
