// SPDX-License-Identifier: MIT
// Notices rings that programs make in a directory.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/process_view.hpp"

namespace rtev {

/// The ring files of a directory, which other processes change. One thread.
class DirectoryWatch {
 public:
  /// Files that are there already are not reported until a program begins a ring in them. A directory that does not
  /// exist has none.
  explicit DirectoryWatch(std::string path);

  /// The numbers in the names of ring files that were made since the last call, or in which a program began a ring:
  /// each once, in no order.
  std::vector<std::int32_t> take();
  /// Opens a ring file; no descriptor if there is none that is a regular file.
  OpenedRing open(std::int32_t number) const;
  /// Removes it, if it is still this file.
  void remove(std::int32_t number, const RingFileId& file) const;

  /// Readable when take() has something to return; -1 if the kernel does not tell: call it often.
  int event_fd() const { return watch_.get(); }

 private:
  bool take_events(std::set<std::int32_t>& found);
  std::set<std::int32_t> list() const;

  std::string path_;
  UniqueFd directory_;
  UniqueFd watch_;  ///< inotify
  std::set<std::int32_t> known_;
};

}  // namespace rtev
