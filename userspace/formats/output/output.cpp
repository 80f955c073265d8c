// SPDX-License-Identifier: MIT
#include "formats/output/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "base/file_io.hpp"
#include "base/reader_wait.hpp"
#include "formats/output/aligned_buffer.hpp"

namespace rtev {
namespace {

/// Bytes of one write(2). A kernel that does not preempt itself occupies the CPU meanwhile, and the reader of rings
/// must not wait long. Bytes that bypass the page cache are not copied; to wait for the disk costs more than to copy
/// few.
constexpr std::size_t max_at_once = std::size_t{64} << 10, min_at_once_direct = std::size_t{64} << 10,
                      max_at_once_direct = std::size_t{1} << 20;

/// A disk that is slower than this is written through the page cache, which holds more than our buffers.
constexpr std::uint64_t slow_write_ns = 100'000'000;

constexpr std::uint64_t step_bytes = std::uint64_t{1} << 20;

/// Pages are dropped this far behind the end of the file, when the disk had time to write them. Pages not written by
/// then are tried again up to the second distance; nothing waits for them.
constexpr std::uint64_t near_bytes = 4 * step_bytes, far_bytes = 32 * step_bytes;

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

void PageCacheTrimmer::advance_to(std::uint64_t end) {
  for (; end - started_ >= step_bytes; started_ += step_bytes) {
    ::sync_file_range(fd_, static_cast<off_t>(started_), step_bytes, SYNC_FILE_RANGE_WRITE);
    if (started_ < near_bytes) continue;
    const std::uint64_t until = started_ - near_bytes + step_bytes;
    const std::uint64_t since = until - std::min(until, far_bytes);
    ::posix_fadvise(fd_, static_cast<off_t>(since), static_cast<off_t>(until - since), POSIX_FADV_DONTNEED);
  }
}

FdOutput::FdOutput(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  struct stat status{};
  is_regular_file_ = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
}

FdOutput::~FdOutput() {
  if (!has_begun_ && discard_) discard_();
}

void FdOutput::wait_for_begin(std::function<void()> discard) {
  has_begun_ = false;
  discard_ = std::move(discard);
}

void FdOutput::begin() {
  if (std::exchange(has_begun_, true) || !is_regular_file_) return;
  if (::ftruncate(fd_, 0) != 0) error_ = errno_error(errno, "cannot empty", name_).error();
}

bool FdOutput::write(std::string_view bytes) {
  const std::size_t end = bytes.size();
  return write_pieces(bytes, {&end, 1});
}

bool FdOutput::write_pieces(std::string_view bytes, std::span<const std::size_t> ends) {
  if (!has_begun_) return true;
  if (error_) return false;
  std::optional<ReaderWait> wait;
  if (!is_regular_file_) wait.emplace(ReaderWait::Of::output);
  Written written = write_all(fd_, bytes.size(), [&](std::size_t offset) {
    const std::uint64_t begin = wait ? monotonic_ns() : 0;
    const ssize_t size = write_some(bytes.substr(offset), written_ + offset);
    if (wait && size > 0) {
      wait->note_progress();
      note_blocked(monotonic_ns() - begin);
    }
    return size;
  });
  if (written.code != 0) {
    error_ = errno_error(written.code, "cannot write to", name_, hint_for(written.code)).error();
    const auto whole = std::ranges::upper_bound(ends, written.bytes);
    const std::size_t kept = whole == ends.begin() ? 0 : *std::prev(whole);
    cut_back(fd_, written.bytes - kept);
    written.bytes = kept;
  }
  written_ += written.bytes;
  if (trimmer_) trimmer_->advance_to(written_);
  if (free_space_) free_space_->note_written(written.bytes);
  return !error_;
}

void FdOutput::note_blocked(std::uint64_t ns) {
  constexpr std::uint64_t shortest = 10'000'000;  // less is the time of a busy reader, or of the kernel
  if (ns >= shortest) blocked_ns_ += ns;
}

void FdOutput::keep_free(const FreeSpaceFloor& floor) {
  if (is_regular_file_ && (floor.share > 0 || floor.bytes > 0)) free_space_.emplace(fd_, floor);
}

void FdOutput::spare_page_cache() {
  trimmer_.emplace(fd_);
  may_be_direct_ = true;
}

/// Whole pages bypass the cache. The bytes before and after them do not, because a piece must be in the file completely
/// once it is written.
FdOutput::Stretch FdOutput::next_stretch(std::string_view bytes, std::uint64_t file_offset) const {
  constexpr std::size_t page = AlignedBuffer::page_bytes;
  const std::size_t place = file_offset % page;
  const Stretch cached{.bytes = std::min(bytes.size(), max_at_once), .direct = false};
  if (!may_be_direct_ || bytes.size() < min_at_once_direct ||
      reinterpret_cast<std::uintptr_t>(bytes.data()) % page != place)
    return cached;
  if (place != 0) return {.bytes = std::min(bytes.size(), page - place), .direct = false};
  return {.bytes = std::min(bytes.size() / page * page, max_at_once_direct), .direct = true};
}

bool FdOutput::set_direct(bool direct) {
  if (direct == is_direct_) return true;
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) != 0) return false;
  is_direct_ = direct;
  return true;
}

ssize_t FdOutput::write_some(std::string_view bytes, std::uint64_t file_offset) {
  Stretch stretch = next_stretch(bytes, file_offset);
  if (stretch.direct && set_direct(true)) {
    const std::uint64_t begin = monotonic_ns();
    const ssize_t written = ::write(fd_, bytes.data(), stretch.bytes);
    const int code = errno;
    if (monotonic_ns() - begin > slow_write_ns) may_be_direct_ = false;
    errno = code;
    // A full disk is an error here; the page cache might accept the bytes and lose them later.
    if (written > 0 || (code != EINVAL && code != EOPNOTSUPP)) return written;
  }
  if (stretch.direct) {
    may_be_direct_ = false;
    stretch = next_stretch(bytes, file_offset);
  }
  set_direct(false);
  return ::write(fd_, bytes.data(), stretch.bytes);
}

/// Errors of writing back the page cache are reported only here.
bool FdOutput::finish() {
  if (!error_ && has_begun_ && trimmer_ && ::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    error_ = errno_error(errno, "cannot write to", name_, hint_for(errno)).error();
  return !error_;
}

bool FdOutput::is_terminal() const {
  return ::isatty(fd_) == 1;
}

}  // namespace rtev
