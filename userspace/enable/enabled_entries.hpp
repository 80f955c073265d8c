// SPDX-License-Identifier: MIT
// Entries of enabled_directory go with their processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/unique_fd.hpp"
#include "enable/held_process.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// Removes the entry of a process when the process ends, also those that earlier runs have made. One thread.
class EnabledEntries {
 public:
  /// `max_entries`: each holds a descriptor.
  EnabledEntries(const Procfs& procfs, std::size_t max_entries);

  /// See has_share(). `user`: charged_user() of its processes.
  bool has_place_for(std::uint32_t user) const;
  /// There is an entry of this process.
  void add(const HeldProcess& process);
  /// Readable when a process has ended.
  int event_fd() const { return ended_.get(); }
  /// Returns the pids of processes that have ended.
  std::vector<std::int32_t> remove_ended();

 private:
  struct Entry {
    std::uint64_t start_ticks;
    std::uint32_t user;
    UniqueFd pidfd;
  };
  using Entries = std::map<std::int32_t, Entry>;
  void forget(Entries::iterator entry);
  void watch(std::int32_t pid, Entry entry);

  std::size_t max_entries_;
  UniqueFd ended_;   ///< epoll
  Entries entries_;  ///< by pid
};

}  // namespace rtev::enable
