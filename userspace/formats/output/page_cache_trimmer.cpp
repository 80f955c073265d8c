// SPDX-License-Identifier: MIT
#include "formats/output/page_cache_trimmer.hpp"

#include <fcntl.h>

#include <algorithm>

namespace rtev {
namespace {

constexpr std::uint64_t step_bytes = std::uint64_t{1} << 20;

/// Pages are dropped this far behind the end of the file, when the disk had time to write them. Pages not written by
/// then are tried again up to the second distance; nothing waits for them.
constexpr std::uint64_t near_bytes = 4 * step_bytes, far_bytes = 32 * step_bytes;

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

}  // namespace rtev
