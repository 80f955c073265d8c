// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"

namespace rtev {

/// Measures how long the thread that constructs it is blocked: it neither runs nor waits for a CPU. On a busy host it
/// may wait for a CPU for long.
class BlockedTime {
 public:
  BlockedTime();
  /// Time blocked since the last call, or since the construction, in ns. 0 if the thread was not blocked at all. Else
  /// time that a hypervisor takes is included; so is the wait for a CPU on kernels without /proc/PID/schedstat.
  std::uint64_t take();

 private:
  struct Times {
    std::uint64_t now_ns = 0;
    std::uint64_t ran_ns = 0;
    std::uint64_t delayed_ns = 0;  ///< while it waited for a CPU
    std::uint64_t waits = 0;       ///< how often it was blocked
  };
  Times read() const;

  UniqueFd schedstat_;
  Times last_;
};

}  // namespace rtev
