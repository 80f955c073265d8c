// SPDX-License-Identifier: MIT
// Which binaries have their runtime functions probed, and for how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "kernel/programs.hpp"

namespace rtev::kernel {

/// Probes stay for a while after the last process of a binary, since the next one may be short; they do not stay for
/// ever, since a probe keeps a deleted file on its disk. A failure is remembered as long. Thread-safe.
class ProbeKeeper {
 public:
  explicit ProbeKeeper(Programs& programs) : programs_(programs) {}
  ProbeKeeper(const ProbeKeeper&) = delete;
  ProbeKeeper& operator=(const ProbeKeeper&) = delete;
  ~ProbeKeeper();

  /// Attaches to a binary; returns at once if that was tried already, by this thread or another, whatever came of it.
  void attach(int fd, std::uint32_t binary_id, std::span<const ProbeSite> sites);
  /// Detaches from binaries that have not been in use for long, and forgets them.
  void detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns);

  /// Attempts so far that left a binary without any probe.
  std::size_t failed() const;
  /// Why the last one failed.
  std::optional<Error> last_error() const;
  /// Functions so far that cannot be probed, in binaries that have others.
  std::size_t skipped() const;
  /// Binaries that the kernel takes up to a second each to detach from, one after the other: it has no uprobe_multi.
  std::size_t slow_to_detach() const;

 private:
  struct Known {
    std::optional<BinaryProbes> probes{};  ///< none: on their way, or failed
    std::uint64_t unused_since_ns = 0;     ///< 0: in use
  };
  Programs& programs_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Known> known_;
  std::size_t failed_ = 0;
  std::size_t skipped_ = 0;
  std::optional<Error> last_error_;
};

}  // namespace rtev::kernel
