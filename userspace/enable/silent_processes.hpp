// SPDX-License-Identifier: MIT
// Processes whose memory kept a worker waiting.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "enable/progress.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// Each of them costs a worker that hangs, and a wait. So, after two of a user, all processes of the user are left
/// alone.
class SilentProcesses {
 public:
  void add(const Progress::Work& work);
  /// Why this process is to be left alone; nothing if it is not. `start_ticks`: 0 if not known. `user`: when it was
  /// found.
  std::optional<std::string> reason(std::int32_t pid, std::uint64_t start_ticks, std::uint32_t user) const;

 private:
  Procfs procfs_;
  std::set<std::pair<std::int32_t, std::uint64_t>> processes_;  ///< pid and start time
  std::map<uid_t, int> by_user_;                                ///< how many
};

}  // namespace rtev::enable
