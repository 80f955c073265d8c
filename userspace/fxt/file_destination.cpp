// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rtev/fxt.hpp"
#include "rtev/fxt_destination.hpp"

namespace rtev {
namespace {

/// Bytes at the end of the first `written` that are the beginning of a record only.
std::size_t bytes_of_cut_record(std::span<const std::byte> records, std::size_t written) {
  std::size_t whole = 0;
  while (whole < written) {
    std::uint64_t header = 0;
    std::memcpy(&header, records.data() + whole, sizeof header);
    const std::size_t bytes = (header >> 4 & fxt::max_record_words) * fxt::word_bytes;
    if (bytes > written - whole) break;
    whole += bytes;
  }
  return written - whole;
}

/// Takes the last bytes off a regular file that ends where the descriptor stands. Others keep what they got.
void cut_off(int fd, std::size_t bytes) {
  struct stat facts{};
  if (bytes == 0 || ::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  const off_t end = ::lseek(fd, 0, SEEK_CUR);
  if (end != facts.st_size || end < static_cast<off_t>(bytes)) return;
  const off_t whole = end - static_cast<off_t>(bytes);
  if (::ftruncate(fd, whole) == 0) ::lseek(fd, whole, SEEK_SET);
}

}  // namespace

FxtFd::FxtFd(int fd, std::string name, std::size_t buffer_words)
    : FxtBuffered(buffer_words), fd_(fd), name_(std::move(name)) {}

Result<void> FxtFd::write(std::span<const std::byte> records) {
  std::size_t written = 0;
  while (written < records.size()) {
    const ssize_t count = ::write(fd_, records.data() + written, records.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
      continue;
    }
    const int code = errno;
    if (code == EINTR) continue;
    if (code == EAGAIN) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    cut_off(fd_, bytes_of_cut_record(records, written));
    return errno_error(code, "cannot write to", name_);
  }
  return {};
}

Result<FxtFile> FxtFile::create(const std::string& path, unsigned mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return errno_error(errno, "cannot create", path);
  return FxtFile(fd, path);
}

// FxtFd only borrows: its move leaves the number behind.
FxtFile::FxtFile(FxtFile&& other) noexcept : FxtFd(std::move(other)) {
  other.fd_ = -1;  // NOLINT(bugprone-use-after-move)
}

FxtFile& FxtFile::operator=(FxtFile&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    FxtFd::operator=(std::move(other));
    other.fd_ = -1;  // NOLINT(bugprone-use-after-move)
  }
  return *this;
}

FxtFile::~FxtFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> FxtFile::close() {
  // The descriptor is gone whatever close() says.
  if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0) return errno_error(errno, "cannot write to", name_);
  return {};
}

}  // namespace rtev
