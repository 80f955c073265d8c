// SPDX-License-Identifier: MIT
// What threads did lately: for questions about a time that turns out to matter only when it is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "analysis/cpu_history.hpp"
#include "analysis/thread_time.hpp"
#include "stream/records.hpp"

namespace rtev {

/// What a thread did in a time that is over.
struct Doing {
  TimeSplit time{};        ///< its total() is that time
  CpuWait longest_wait{};  ///< for one that had the cpu it could have run on; ns = 0: there was none
};

/// The last stretches of each thread, and its role. Memory is bounded: what is too long ago is unknown. One thread.
class ThreadHistory {
 public:
  /// A thread that shares its cpu is switched every millisecond or two, and whoever waits for it may do so for long.
  static constexpr std::size_t stretches_of_a_thread = 1024;
  /// Where there are so many threads that all stretches together come to this, each has fewer.
  static constexpr std::size_t most_stretches = std::size_t{1} << 18, fewest_of_a_thread = 24, most_threads = 8192;

  /// A stretch that ended. For runnable time `cpu` is the one that it waited for.
  void add(const ThreadStretch& stretch, const CpuHistory& cpus);
  /// Takes roles from an event, and leave of a thread that dies.
  void see(const SchedSwitch& change);
  void forget(std::int32_t pid);

  ThreadRole role(std::int32_t tid) const;

  /// What a thread did from `from_ns` to `to_ns`, which is not after the present of the others.
  Doing between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns, const ThreadTime& time,
                const CpuHistory& cpus) const;

 private:
  struct Past {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    ThreadState state = ThreadState::unknown;
    CpuWait wait{};  ///< of runnable time: for whom it waited longest
  };
  struct Recent {
    std::int32_t pid = 0;
    ThreadRole role = ThreadRole::unknown;
    std::deque<Past> stretches{};  ///< oldest first
  };
  static Past past_of(const ThreadStretch& stretch, const CpuHistory& cpus);
  Recent* recent(std::int32_t pid, std::int32_t tid);

  std::unordered_map<std::int32_t, Recent> threads_;
  std::size_t stretches_ = 0;  ///< of all threads
};

}  // namespace rtev
