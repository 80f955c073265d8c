// SPDX-License-Identifier: MIT
// Which binaries have the functions probed that write events, and when their probes are taken off and put back.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "kernel/ringless_programs.hpp"

namespace rtev::kernel {

/// What the probes of one binary take.
struct RinglessSites {
  std::vector<EmitterSite> sites;
  rtev_ringless_binary facts;  ///< but for its round
  std::string why_not{};       ///< there are no sites
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

  /// Since when a binary has its probes; nothing while it has none.
  std::optional<std::uint64_t> probed_since(std::uint32_t binary_id) const;
  /// Why a binary that was wanted cannot be probed; nothing if it can, as far as is known.
  std::optional<std::string> failure(std::uint32_t binary_id) const;

  /// Probes were put on, or taken off.
  struct Change {
    std::uint32_t binary;
    bool on;
    std::uint64_t time_ns;  ///< from then on all is seen, or nothing any more
  };
  /// Since the last call, in order.
  std::vector<Change> take_changes();

 private:
  struct Known {
    UniqueFd file;
    RinglessSites sites;
    std::vector<UprobeLink> links{};
    bool wanted = false, busy = false;
    std::optional<std::string> failure{};
    std::uint32_t round = 0;
    std::uint64_t probed_since_ns = 0;
    std::uint64_t unused_since_ns = 0;  ///< 0: in use
  };

  Result<std::vector<UprobeLink>> put_on(int file, std::uint32_t binary_id, const RinglessSites& sites,
                                         std::uint32_t round);

  RinglessPrograms& programs_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Known> known_;
  std::set<std::uint32_t> wanted_;  ///< that are not known yet
  std::vector<Change> changes_;
};

}  // namespace rtev::kernel
