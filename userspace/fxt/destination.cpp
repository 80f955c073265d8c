// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_io.hpp"
#include "fxt/record_layout.hpp"
#include "rtev/fxt_destination.hpp"

namespace rtev {

Result<std::span<std::uint64_t>> FxtMemory::buffer(std::size_t min_words) {
  constexpr std::size_t min_growth = 1024;
  const std::size_t room = words_.size() - used_;
  if (room < min_words) words_.resize(words_.size() + std::max({min_words - room, words_.size(), min_growth}));
  return std::span(words_).subspan(used_);
}

Result<void> FxtMemory::accept(std::span<const std::uint64_t> records) {
  used_ += records.size();
  return {};
}

Result<std::span<std::uint64_t>> FxtBuffered::buffer(std::size_t min_words) {
  if (buffer_.size() < min_words) buffer_.resize(min_words);
  return std::span(buffer_);
}

Result<void> FxtBuffered::accept(std::span<const std::uint64_t> records) {
  return write(std::as_bytes(records));
}

Result<FxtFile> FxtFile::create(const std::string& path, unsigned mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return errno_error(errno, "cannot create", path);
  return FxtFile(fd, path, default_buffer_words);
}

FxtFile& FxtFile::operator=(FxtFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  FxtBuffered::operator=(std::move(other));
  return *this;
}

FxtFile::~FxtFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> FxtFile::write(std::span<const std::byte> records) {
  const Written written = write_all(fd_, records.size(), [&](std::size_t offset) {
    return ::write(fd_, records.data() + offset, records.size() - offset);
  });
  if (written.code == 0) return {};
  // A record that was written only in part is removed.
  std::size_t whole = 0;
  while (whole < written.bytes) {
    std::uint64_t header = 0;
    std::memcpy(&header, records.data() + whole, sizeof header);
    const std::size_t bytes = fxt::bits(header, 4, 12) * fxt::word_bytes;
    if (bytes > written.bytes - whole) break;
    whole += bytes;
  }
  cut_back(fd_, written.bytes - whole);
  return errno_error(written.code, "cannot write to", name_);
}

Result<void> FxtFile::close() {
  // The descriptor is gone whatever close() returns.
  if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0) return errno_error(errno, "cannot write to", name_);
  return {};
}

}  // namespace rtev
