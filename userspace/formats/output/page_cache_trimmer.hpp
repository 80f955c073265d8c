// SPDX-License-Identifier: MIT
// A long recording shall not push what the host works with out of the page cache.
#pragma once

#include <cstdint>

namespace rtev {

/// Follows the end of a file that is written from its beginning and lets its pages go once they are on the disk. The
/// kernel then writes to the same few pages again and again, which also costs far less than new ones. Short files stay
/// in the cache. All of it is advice: where a file system does not take it, nothing is different.
class PageCacheTrimmer {
 public:
  explicit PageCacheTrimmer(int fd) : fd_(fd) {}

  /// This many bytes are written now.
  void advance_to(std::uint64_t end);

 private:
  int fd_;
  std::uint64_t started_ = 0;  ///< on their way to the disk up to here
};

}  // namespace rtev
