// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/unique_fd.hpp"

namespace rtev {

/// How long a thread was blocked: it neither ran nor waited for a CPU, which it may do for long on a busy host. For the
/// thread that constructs it.
class BlockedTime {
 public:
  BlockedTime();
  /// Since the last call, or the construction; ns. Where the kernel does not count the wait for a CPU, that is part of
  /// it if the thread was blocked at all. So is time that a hypervisor takes.
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
