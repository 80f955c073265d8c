// SPDX-License-Identifier: MIT
#include "sinks/cache_trail.hpp"

#include <fcntl.h>

namespace rtev {
namespace {

constexpr std::uint64_t step_bytes = std::uint64_t{1} << 20;

/// How far behind the end pages are let go: the disk has had the time to take them. Some that it has not taken by then
/// may stay, nobody waits for it.
constexpr std::uint64_t length_bytes = 16 * step_bytes;

}  // namespace

void CacheTrail::advance_to(std::uint64_t end) {
  for (; end - started_ >= step_bytes; started_ += step_bytes) {
    ::sync_file_range(fd_, static_cast<off_t>(started_), step_bytes, SYNC_FILE_RANGE_WRITE);
    if (started_ < length_bytes) continue;
    ::posix_fadvise(fd_, static_cast<off_t>(started_ - length_bytes), step_bytes, POSIX_FADV_DONTNEED);
  }
}

}  // namespace rtev
