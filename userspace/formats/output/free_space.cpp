// SPDX-License-Identifier: MIT
#include "formats/output/free_space.hpp"

#include <sys/statvfs.h>

#include <algorithm>

#include "base/clock.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t look_interval_ns = 50'000'000, look_interval_bytes = std::uint64_t{8} << 20;

/// What is on its way to the file when the disk is found to be low has to find room, too: what is written in such a
/// time, and the blocks that pieces are joined to.
constexpr double reserved_s = 0.5, reserved_bytes = 4 << 20;

/// What is available above the floor, in bytes; less than 0 if it is low.
double room_of(const DiskSpace& space, const FreeSpaceFloor& floor) {
  const double wanted =
      floor.share > 0 ? floor.share * static_cast<double>(space.size) : static_cast<double>(floor.bytes);
  return static_cast<double>(space.available) - wanted;
}

}  // namespace

bool is_low(const DiskSpace& space, const FreeSpaceFloor& floor) {
  return space.size != 0 && room_of(space, floor) < 0;
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
  if (low_ || (now - looked_ns_ < look_interval_ns && unseen_bytes_ < next_look_bytes_)) return;
  const double bytes_per_s =
      static_cast<double>(unseen_bytes_) * 1e9 / static_cast<double>(std::max(now - looked_ns_, look_interval_ns));
  looked_ns_ = now;
  unseen_bytes_ = 0;
  const DiskSpace space = space_of(fd_);
  if (space.size == 0) return;
  const double room = room_of(space, floor_) - bytes_per_s * reserved_s - reserved_bytes;
  if (room < 0) low_ = true;
  // A small disk may be full before much is written.
  next_look_bytes_ = std::min(look_interval_bytes, static_cast<std::uint64_t>(std::max(room, 0.0) / 4));
}

}  // namespace rtev
