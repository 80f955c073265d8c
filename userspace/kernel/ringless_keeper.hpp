// SPDX-License-Identifier: MIT
// Which binaries have the functions probed that write events, and when their probes are taken off and put back.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/unique_fd.hpp"
#include "kernel/ringless_programs.hpp"

namespace rtev::kernel {

/// What the probes of one binary take.
struct RinglessSites {
  std::vector<EmitterSite> sites;
  rtev_ringless_binary facts;  ///< but for its round
};

/// Probes are put on and taken off by attach() and detach(), which wait for the kernel: not for the thread that reads
/// rings. Thread-safe.
class RinglessKeeper {
 public:
  explicit RinglessKeeper(RinglessPrograms& programs) : programs_(programs) {}
  RinglessKeeper(const RinglessKeeper&) = delete;
  RinglessKeeper& operator=(const RinglessKeeper&) = delete;
  ~RinglessKeeper();

  /// Remembers a binary, by its open file. Attaches to it if it was wanted already.
  void learn(int fd, std::uint32_t binary_id, const RinglessSites& sites);
  /// There is a process to be probed. True if attach() has something to do.
  bool want(std::uint32_t binary_id);
  /// Nothing if the binary is not known, not wanted, or has its probes.
  void attach(std::uint32_t binary_id);
  /// Takes the probes off for a while; want() puts them back.
  void detach(std::uint32_t binary_id);
  /// Takes them off where nobody has been wanting them for long.
  void detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns);

  /// Probes were put on, or taken off.
  struct Change {
    std::uint32_t binary;
    bool on;
    std::uint64_t time_ns;  ///< from then on all is seen, or nothing any more
  };
  /// Since the last call, in order.
  std::vector<Change> take_changes();

  /// Binaries that cannot be probed, and why the last one cannot.
  std::size_t failed() const;
  std::optional<Error> last_error() const;

 private:
  struct Known {
    UniqueFd file;
    RinglessSites sites;
    std::vector<UprobeLink> links{};
    bool wanted = false, failed = false, busy = false;
    std::uint32_t round = 0;
    std::uint64_t unused_since_ns = 0;  ///< 0: in use
  };

  Result<std::vector<UprobeLink>> put_on(int file, std::uint32_t binary_id, const RinglessSites& sites,
                                         std::uint32_t round);

  RinglessPrograms& programs_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Known> known_;
  std::set<std::uint32_t> wanted_;  ///< that are not known yet
  std::vector<Change> changes_;
  std::size_t failed_ = 0;
  std::optional<Error> last_error_;
};

}  // namespace rtev::kernel
