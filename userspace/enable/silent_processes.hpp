// SPDX-License-Identifier: MIT
// Processes whose memory kept a worker waiting, or at which workers ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "enable/progress.hpp"
#include "enable/refused.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// Each of them costs a worker that hangs, and a wait. So, after two of a user, all processes of the user are left
/// alone: for ten minutes, then twice as long each time, for an hour at the most. Others may have kept the worker
/// waiting, by a lock on a directory. The same after four workers within an hour that ended at processes of the user.
class SilentProcesses {
 public:
  void add(const Progress::Work& work, std::uint64_t now_ns = monotonic_ns());
  /// The worker ended while it was at this process. It may have been killed: the process counts when that happens
  /// again.
  void add_end(const Progress::Work& work, std::uint64_t now_ns = monotonic_ns());
  /// The worker ended when it did nothing but put back a hook that was left in this process.
  void add_mend_end(const Progress::Work& work, std::uint64_t now_ns = monotonic_ns());
  /// False for an hour after that: each such end costs a worker, so what was left in programs of the user is left to a
  /// later run.
  bool may_mend(std::uint32_t user, std::uint64_t now_ns = monotonic_ns()) const;
  /// Why this process is to be left alone; nothing if it is not. `start_ticks`: 0 if not known. `user`: when it was
  /// found.
  std::optional<Refused> reason(std::int32_t pid, std::uint64_t start_ticks, std::uint32_t user,
                                std::uint64_t now_ns = monotonic_ns()) const;
  /// Whose programs come first at the end, when there is little time: those with the least one. Root's come first, and
  /// last those of users who are remembered here.
  std::pair<bool, bool> rank(std::uint32_t user) const { return {has_any_of(user), user != 0}; }
  /// Whether one of this user's did not answer.
  bool has_any_of(std::uint32_t user, std::uint64_t now_ns = monotonic_ns()) const;

 private:
  struct OfUser {
    std::set<std::pair<std::int32_t, std::uint64_t>> processes{};  ///< pid and start time
    bool ends_workers = false;
    std::uint64_t forget_ns = 0, memory_ns = 600'000'000'000;  ///< of both
    std::deque<std::uint64_t> ends_ns{};                       ///< when workers ended, of the last hour
    std::uint64_t mend_ns = 0;                                 ///< when hooks of the user may be put back again
  };

  OfUser& remember(std::uint32_t user, std::uint64_t now_ns);

  Procfs procfs_;
  std::map<uid_t, OfUser> by_user_;
  std::deque<std::pair<std::int32_t, std::uint64_t>> ends_{};  ///< where workers ended last: pid and start time
};

}  // namespace rtev::enable
