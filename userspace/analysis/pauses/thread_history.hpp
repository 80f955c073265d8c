// SPDX-License-Identifier: MIT
// What threads did lately, for questions about a time that turns out to matter only when it is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/cpu_history.hpp"
#include "analysis/sample_history.hpp"
#include "base/recent_entries.hpp"
#include "base/ring_buffer.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// What a thread did in a time that is over.
struct ThreadActivity {
  TimeSplit time{};        ///< its total() is that time
  CpuWait longest_wait{};  ///< for a cpu that another thread had; ns = 0: there was none
  // If stacks are sampled:
  std::vector<SeenStack> stacks{};         ///< of the thread
  std::vector<SeenStack> holder_stacks{};  ///< of the thread that had the cpu in the longest wait
};

/// The last intervals of each thread, from a ThreadTracker. Memory is bounded: what is too long ago is unknown. One
/// thread.
class ThreadHistory {
 public:
  /// A thread that shares its cpu is switched every millisecond or two, and a wait for it may be long.
  static constexpr std::size_t intervals_per_thread = 1024;
  /// When all threads together have `max_intervals`, each keeps only `min_intervals_per_thread`.
  static constexpr std::size_t max_intervals = std::size_t{1} << 18, min_intervals_per_thread = 24, max_threads = 8192;
  /// Who had the cpu is kept for waits of at least so long. For shorter ones the CpuHistory is asked, which may have
  /// forgotten it: they are most of the intervals, and hardly ever asked for.
  static constexpr std::uint64_t min_kept_wait_ns = 20'000;

  /// Both know the present, and must outlive this.
  ThreadHistory(const ThreadTracker& threads, const CpuHistory& cpus) : threads_(threads), cpus_(cpus) {}

  /// An interval that has ended.
  void add(const ThreadInterval& interval);
  void forget_thread(std::int32_t tid);
  void forget_process(std::int32_t pid);

  /// What a thread did, without its stacks, from `from_ns` to `to_ns`, which must not be after the present.
  ThreadActivity between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const;

 private:
  struct Past {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    std::int32_t cpu = -1;
    ThreadState state = ThreadState::unknown;

    bool keeps_wait() const { return state == ThreadState::runnable && end_ns - begin_ns >= min_kept_wait_ns; }
  };
  struct KeptWait {
    std::uint64_t begin_ns = 0;  ///< of the interval
    CpuWait wait{};
  };
  struct History {
    std::int32_t pid = 0;
    RingBuffer<Past> intervals{};
    RingBuffer<KeptWait> waits{};  ///< of those intervals that keep theirs, in the same order
    void drop_oldest();
  };
  static Past past_of(const ThreadInterval& interval);
  /// The longest of a runnable interval.
  CpuWait wait_of(const Past& past) const;
  /// Null if there are too many threads.
  History* history_of(const ThreadInterval& interval);

  const ThreadTracker& threads_;
  const CpuHistory& cpus_;
  std::unordered_map<std::int32_t, History> histories_;  ///< by tid
  RecentEntries<History> recent_;
  std::size_t intervals_ = 0;  ///< of all threads
};

}  // namespace rtev
