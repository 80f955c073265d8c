// SPDX-License-Identifier: MIT
// Notices when a file system is nearly full, so that a recording can end before other programs fail.
#pragma once

#include <atomic>
#include <cstdint>

namespace rtev {

/// What has to stay free of a file system: a share of its size, or a number of bytes. Zero: nothing.
struct FreeSpaceFloor {
  double share = 0;         ///< 0 to 1
  std::uint64_t bytes = 0;  ///< used if the share is 0
};

/// Sizes of a file system, in bytes.
struct DiskSpace {
  std::uint64_t size = 0;
  std::uint64_t available = 0;  ///< to users other than root
};

/// True if less is available than the floor wants. A file system that does not know its size is never low.
bool is_low(const DiskSpace& space, const FreeSpaceFloor& floor);
/// The size of the file system that an open file is on; zero if it is not known. Waits if the file system does.
DiskSpace space_of(int fd);

/// Looks at the file system of a file while one thread writes to it. Any thread may ask whether it is low.
class FreeSpaceWatch {
 public:
  /// `fd` has to stay open.
  FreeSpaceWatch(int fd, const FreeSpaceFloor& floor) : fd_(fd), floor_(floor) {}

  /// Call it when `bytes` were written. Looks every 50 ms, or every 8 MiB, or when a small disk may be nearly full. It
  /// is low, too, if not much more would fit than what is written in half a second.
  void note_written(std::uint64_t bytes);
  /// Once true, stays true.
  bool is_low() const { return low_; }

 private:
  int fd_;
  FreeSpaceFloor floor_;
  std::atomic<bool> low_ = false;
  std::uint64_t looked_ns_ = 0, unseen_bytes_ = 0, next_look_bytes_ = 0;
};

}  // namespace rtev
