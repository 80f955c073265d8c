// SPDX-License-Identifier: MIT
#include "formats/output/free_space.hpp"

#include <sys/statvfs.h>

#include "base/clock.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t look_interval_ns = 50'000'000, look_interval_bytes = std::uint64_t{8} << 20;

}  // namespace

bool is_low(const DiskSpace& space, const FreeSpaceFloor& floor) {
  if (space.size == 0) return false;
  const double wanted =
      floor.share > 0 ? floor.share * static_cast<double>(space.size) : static_cast<double>(floor.bytes);
  return static_cast<double>(space.available) < wanted;
}

DiskSpace space_of(int fd) {
  struct statvfs status{};
  if (::fstatvfs(fd, &status) != 0) return {};
  return {.size = std::uint64_t{status.f_blocks} * status.f_frsize,
          .available = std::uint64_t{status.f_bavail} * status.f_frsize};
}

void FreeSpaceWatch::note_written(std::uint64_t bytes) {
  unseen_bytes_ += bytes;
  const std::uint64_t now = monotonic_ns();
  if (low_ || (now - looked_ns_ < look_interval_ns && unseen_bytes_ < look_interval_bytes)) return;
  looked_ns_ = now;
  unseen_bytes_ = 0;
  if (rtev::is_low(space_of(fd_), floor_)) low_ = true;
}

}  // namespace rtev
