// SPDX-License-Identifier: MIT
// Keeps a long recording from evicting other data from the page cache.
#pragma once

#include <cstdint>

namespace rtev {

/// Drops the pages of a file from the page cache once they are on the disk. The file must be written from its
/// beginning. The kernel then reuses a few pages, which also costs far less than new ones. Short files stay in the
/// cache. A file system may ignore the advice.
class PageCacheTrimmer {
 public:
  explicit PageCacheTrimmer(int fd) : fd_(fd) {}

  /// The file has this many bytes now.
  void advance_to(std::uint64_t end);

 private:
  int fd_;
  std::uint64_t started_ = 0;  ///< write-back was started for the bytes before this one
};

}  // namespace rtev
