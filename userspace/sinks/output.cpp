// SPDX-License-Identifier: MIT
#include "sinks/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace rtev {
namespace {

std::string hint_for(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, write elsewhere with -o, or trace less (-d, -p, --sched off)";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f) or trace for a shorter time (-d)";
    default:
      return {};
  }
}

}  // namespace

bool FdOutput::write(std::string_view bytes) {
  while (!error_ && !bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    const int code = errno;
    if (code == EINTR) continue;
    if (code == EAGAIN) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    error_ = errno_error(code, "cannot write to", name_, hint_for(code)).error();
  }
  return !error_;
}

}  // namespace rtev
