// SPDX-License-Identifier: MIT
// The event loop of a thread, from what the scheduler says of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/open_spans.hpp"
#include "analysis/stalls/stalls_report.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// Whether the thread waits for events in this interval, or looked for them without having to wait. Where the stream
/// has no system calls, any sleep that signals end counts.
bool is_wait_for_events(const ThreadInterval& interval);

/// The turns of one thread's loop.
class EventLoop {
 public:
  /// Turns that are needed to say what is usual.
  static constexpr std::uint64_t min_turns = 8;
  /// A stall is longer than the median of the turns by more than this factor.
  static constexpr std::uint64_t stall_factor = 5;
  static constexpr std::size_t max_long_turns = 100, max_competitors = 8;

  /// What the thread does since it waited for events last.
  struct Turn {
    std::uint64_t begin_ns = 0;
    TimeSplit time{}, in_pauses{};
    std::array<std::uint64_t, static_cast<std::size_t>(last_syscall) + 1> blocked{};  ///< by system call, in ns
    std::vector<Competitor> competitors{};
    std::optional<OpenSpan> span{};  ///< that was open longest
    std::uint64_t span_ns = 0;
    std::string task{};  ///< that ran longest, of those that ran for long
    std::uint64_t task_ns = 0;
  };
  struct LongTurn {
    Stall stall{};
    std::optional<OpenSpan> span{};
  };

  /// `begin_ns`: of its first turn.
  explicit EventLoop(std::uint64_t begin_ns) { turn_.begin_ns = begin_ns; }

  Turn& turn() { return turn_; }
  /// Time that is no wait for events.
  void add(const ThreadInterval& interval);
  /// Another thread had the cpu that the thread waited for.
  void add_wait(const Thread& by, std::uint64_t ns);
  void add_span(const OpenSpan& span, std::uint64_t end_ns);
  /// How long a task that ran since `begin_ns` did so in this turn, if no other one ran longer in it; else 0.
  std::uint64_t longest_run(std::uint64_t begin_ns, std::uint64_t end_ns) const;
  /// The turn as a long one; nothing if it is shorter than `min_ns` or its length is unknown.
  std::optional<LongTurn> long_turn(std::uint64_t end_ns, std::uint64_t min_ns) const;
  /// The thread waits for events from `end_ns` on, and until `next_ns`.
  void end_turn(std::uint64_t end_ns, std::uint64_t next_ns, const std::optional<LongTurn>& turn);

  bool is_loop() const { return turns_.count() >= min_turns; }
  bool is_stall(std::uint64_t length_ns) const { return length_ns > stall_factor * turns_.percentile(50); }
  const Histogram& turns() const { return turns_; }
  std::uint64_t unknown_turns() const { return unknown_turns_; }
  std::uint64_t unknown_ns() const { return unknown_ns_; }
  std::uint64_t total_ns() const { return total_ns_; }
  /// Longest first.
  const std::vector<LongTurn>& long_turns() const { return long_turns_; }

 private:
  Turn turn_{};
  Histogram turns_{};
  std::uint64_t unknown_turns_ = 0, unknown_ns_ = 0, total_ns_ = 0;
  std::vector<LongTurn> long_turns_{};
};

}  // namespace rtev
