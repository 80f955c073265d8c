// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "base/proc_files.hpp"
#include "base/unique_fd.hpp"

namespace rtev {

/// The first `limit` bytes of a file of /proc or /sys; nothing if it is not open, or cannot be read.
inline std::optional<std::string> read_small_file(const UniqueFd& file, std::size_t limit) {
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() < limit) {
    const ssize_t got = ::read(file.get(), chunk.data(), std::min(chunk.size(), limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}
inline std::optional<std::string> read_small_file(const std::filesystem::path& path, std::size_t limit) {
  return read_small_file(open_proc(path, O_RDONLY), limit);
}

/// Number of bytes written, and the errno of the error after them; 0 if all were written.
struct Written {
  std::size_t bytes = 0;
  int code = 0;
};

/// Calls write_some(offset), which writes bytes from the offset on and returns the result of write(2), until `size`
/// bytes are written. Waits while the descriptor is not ready.
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

/// Truncates the last `bytes` that were written to a regular file, if the file ends with them. On failure the file has
/// a partial record at its end, as after a kill.
inline void cut_back(int fd, std::size_t bytes) {
  struct stat status{};
  if (bytes == 0 || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const off_t end = ::lseek(fd, 0, SEEK_CUR);
  if (end != status.st_size || end < static_cast<off_t>(bytes)) return;
  const off_t whole = end - static_cast<off_t>(bytes);
  if (::ftruncate(fd, whole) == 0) ::lseek(fd, whole, SEEK_SET);
}

}  // namespace rtev
