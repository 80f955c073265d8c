// SPDX-License-Identifier: MIT
// Entries of enabled_directory go with their processes.
#pragma once

#include <cstdint>
#include <map>

#include "base/unique_fd.hpp"
#include "enable/held_process.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// Removes the entry of a process when the process ends, also those that earlier runs have made. One thread.
class EnabledEntries {
 public:
  explicit EnabledEntries(const Procfs& procfs);

  /// There is an entry of this process.
  void add(const HeldProcess& process);
  /// Readable when a process has ended.
  int event_fd() const { return ended_.get(); }
  void remove_ended();

 private:
  struct Entry {
    std::uint64_t start_ticks;
    UniqueFd pidfd;
  };
  using Entries = std::map<std::int32_t, Entry>;
  void forget(Entries::iterator entry);
  void watch(std::int32_t pid, std::uint64_t start_ticks, UniqueFd pidfd);

  UniqueFd ended_;   ///< epoll
  Entries entries_;  ///< by pid
};

}  // namespace rtev::enable
