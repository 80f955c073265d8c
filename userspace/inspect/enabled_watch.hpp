// SPDX-License-Identifier: MIT
// Sees other runs of rtev-bpf switch the events of programs on and off.
#pragma once

#include <cstdint>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/enabled_list.hpp"

namespace rtev {

/// Watches the entries of enabled_directory, which only root writes. Sees nothing if it cannot watch. One thread.
class EnabledWatch {
 public:
  /// Makes the directory if it is not there.
  EnabledWatch();

  struct Change {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;
    Enabled enabled{};
  };
  /// What was written since the last call.
  std::vector<Change> take() const;
  /// Readable (epoll) when there is something to take; -1 if it cannot watch.
  int event_fd() const { return fd_.get(); }
  /// Sees nothing from now on. In the background: the kernel takes up to 20 ms to close it.
  void stop() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

}  // namespace rtev
