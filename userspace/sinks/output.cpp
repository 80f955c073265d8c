// SPDX-License-Identifier: MIT
#include "sinks/output.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rtev {
namespace {

/// Kernels that do not preempt themselves let nobody else have the cpu meanwhile: who reads rings must not wait long.
constexpr std::size_t most_at_once = std::size_t{64} << 10;

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

FdOutput::~FdOutput() {
  if (!has_begun_ && created_) ::unlink(name_.c_str());
}

void FdOutput::wait_for_begin(bool created) {
  has_begun_ = false;
  created_ = created;
}

void FdOutput::begin() {
  if (std::exchange(has_begun_, true) || !is_regular_file()) return;
  if (::ftruncate(fd_, 0) != 0) error_ = errno_error(errno, "cannot empty", name_).error();
}

bool FdOutput::write(std::string_view bytes) {
  if (!has_begun_) return true;
  std::size_t of_this_piece = 0;
  while (!error_ && !bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), most_at_once));
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      of_this_piece += static_cast<std::size_t>(written);
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
    cut_back(of_this_piece);
    of_this_piece = 0;
  }
  written_ += of_this_piece;
  if (trail_) trail_->advance_to(written_);
  return !error_;
}

bool FdOutput::is_regular_file() const {
  struct stat status{};
  return ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
}

bool FdOutput::is_terminal() const {
  return ::isatty(fd_) == 1;
}

/// Should that fail, too, the file ends in half a piece, as after a kill, and what reads it must cope.
void FdOutput::cut_back(std::size_t bytes) {
  if (bytes == 0 || !is_regular_file()) return;
  const off_t end = ::lseek(fd_, 0, SEEK_CUR);
  if (end < static_cast<off_t>(bytes)) return;
  const off_t whole = end - static_cast<off_t>(bytes);
  if (::ftruncate(fd_, whole) == 0) ::lseek(fd_, whole, SEEK_SET);
}

}  // namespace rtev
