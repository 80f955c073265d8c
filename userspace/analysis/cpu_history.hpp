// SPDX-License-Identifier: MIT
// Which threads had the cpus lately: what a runnable thread waited for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>

#include "stream/thread_tracker.hpp"

namespace rtev {

/// A time in which a thread was runnable and another one may have had its cpu.
struct CpuWait {
  /// Switches between two untraced threads may not be in the stream.
  enum class Had : std::uint8_t {
    throughout,
    first,  ///< and perhaps others after it
    last,   ///< and perhaps others before it
    ends,   ///< first and last, and perhaps others in between
  };

  std::uint64_t ns = 0;
  std::int32_t cpu = -1;       ///< that the thread waited for; -1: unknown
  std::optional<Thread> by{};  ///< which thread had that cpu; tid 0: none, the cpu was idle
  Had had = Had::throughout;   ///< how much of that time `by` had it

  /// Whether a thread had the cpu for most of `whole_ns`: else it must not be named as the one that was waited for.
  bool is_most_of(std::uint64_t whole_ns) const {
    return by && had == Had::throughout && ns >= whole_ns - whole_ns / 2;
  }
  /// Whether another thread is known to have had the cpu, for a part of the time at least.
  bool is_of_others() const { return by && by->tid != 0; }
};

/// The last intervals of each cpu, from a ThreadTracker. Memory is bounded. One thread.
class CpuHistory {
 public:
  static constexpr std::size_t intervals_per_cpu = 256, max_cpus = 4096;

  /// `threads` knows the present thread of each cpu, and must outlive this.
  explicit CpuHistory(const ThreadTracker& threads) : threads_(threads) {}

  void add(const CpuInterval& interval);

  /// Calls visit(const CpuWait&) for each thread that had a cpu from `from_ns` to `to_ns`, which must not be after the
  /// present. The waits sum up to that time.
  template <typename Visitor>
  void each(std::int32_t cpu, std::uint64_t from_ns, std::uint64_t to_ns, Visitor&& visit) const {
    std::uint64_t visited_until = from_ns;
    const auto visit_part = [&](const CpuInterval& interval) {
      const std::uint64_t begin = std::max(interval.begin_ns, visited_until), end = std::min(interval.end_ns, to_ns);
      if (end <= begin) return;
      if (begin > visited_until) visit(CpuWait{.ns = begin - visited_until, .cpu = cpu});
      visit(wait_of(interval, begin, end));
      visited_until = end;
    };
    if (cpu >= 0) {
      const auto number = static_cast<std::uint32_t>(cpu);
      if (const auto known = cpus_.find(number); known != cpus_.end()) {
        const auto& [count, intervals] = known->second;
        // From the newest one back: most questions are about the last moments.
        const std::size_t oldest = count - std::min(count, intervals_per_cpu);
        std::size_t i = count;
        while (i > oldest && intervals[(i - 1) % intervals_per_cpu].end_ns > from_ns) --i;
        for (; i < count && visited_until < to_ns; ++i) visit_part(intervals[i % intervals_per_cpu]);
      }
      if (const RunningThread* const running = threads_.running_on(number); running != nullptr)
        visit_part(present(number, *running));
    }
    if (visited_until < to_ns) visit(CpuWait{.ns = to_ns - visited_until, .cpu = cpu});
  }

 private:
  struct Recent {
    std::size_t count = 0;  ///< ever
    std::array<CpuInterval, intervals_per_cpu> intervals{};
  };
  static CpuInterval present(std::uint32_t cpu, const RunningThread& running) {
    return {.cpu = cpu,
            .begin_ns = running.begin_ns,
            .end_ns = std::numeric_limits<std::uint64_t>::max(),
            .first = running.thread,
            .last = running.thread,
            .gapless = running.gapless};
  }
  static CpuWait wait_of(const CpuInterval& interval, std::uint64_t begin_ns, std::uint64_t end_ns);

  const ThreadTracker& threads_;
  std::unordered_map<std::uint32_t, Recent> cpus_;
};

}  // namespace rtev
