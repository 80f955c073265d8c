// SPDX-License-Identifier: MIT
#include "session/live/ring_pace.hpp"

#include <time.h>

#include <algorithm>

namespace rtev {
namespace {

/// No OCaml program writes faster into one ring: measured at 18 M events/s of 2.3 words. And what a program that goes
/// on writing for long hardly exceeds: 5 M events/s.
constexpr std::uint64_t max_words_per_us = 42, max_usual_words_per_us = 11;

/// Share of a ring that may fill up between two looks, at the pace of the last ones.
constexpr double fill_goal = 0.25;

/// A ring that fills up so many times faster than before has a burst, if it is a burst that matters.
constexpr double burst_factor = 2, burst_fullest = 1.0 / 16;

constexpr std::uint64_t min_interval_ns = 200'000;

/// A ring with fewer words is not looked at more often than this: it would set the pace for the rings of the whole
/// host.
constexpr std::uint64_t small_ring_words = 4096, small_ring_interval_ns = 2'000'000;

/// The kernel's tick, at which BPF looks at the rings of the threads that run.
std::uint64_t tick_ns() {
  static const std::uint64_t tick = [] {
    timespec resolution{};
    // The coarse clock is advanced by the tick.
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
    return static_cast<std::uint64_t>(resolution.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(resolution.tv_nsec);
  }();
  return tick;
}

/// A process that ran for so long without a look of BPF is one whose rings it cannot read.
std::uint64_t max_unchecked_ns() {
  return 3 * tick_ns();
}

}  // namespace

RingPace::RingPace(std::uint64_t ring_words, std::uint64_t max_delay_ns)
    : max_delay_ns_(max_delay_ns),
      fill_ns_(ring_words * 1000 / max_words_per_us),
      shortest_ns_(ring_words < small_ring_words ? small_ring_interval_ns : min_interval_ns),
      is_large_(ring_words * 1000 / max_usual_words_per_us >= tick_ns()) {}

void RingPace::note(std::uint64_t now_ns, const kernel::RingActivity& activity) {
  if (activity.checked) {
    checked_ = true;
    unchecked_since_ns_.reset();
  } else if (activity.ran) {
    if (!unchecked_since_ns_) unchecked_since_ns_ = now_ns;
    checked_ &= now_ns - *unchecked_since_ns_ <= max_unchecked_ns();
  }
  if (activity.ran && !due_ns_) due_ns_ = now_ns + longest_ns(false);
  if (activity.fills_up) due_ns_ = now_ns;
}

std::uint64_t RingPace::longest_ns(bool is_burst) const {
  return is_large_ && checked_ && !is_burst ? max_delay_ns_ : std::min(fill_ns_, max_delay_ns_);
}

void RingPace::was_read(std::uint64_t now_ns, std::uint64_t elapsed_ns, double fullest) {
  read_ns_ = now_ns;
  const double rate = fullest / static_cast<double>(std::max<std::uint64_t>(elapsed_ns, 1));
  const bool is_burst = fullest >= burst_fullest && rate > burst_factor * rate_;
  rate_ = rate;
  const double until_goal_ns = fill_goal / std::max(rate, 1e-12);
  const std::uint64_t longest = longest_ns(is_burst);
  std::uint64_t interval = longest;
  if (until_goal_ns < static_cast<double>(longest)) interval = static_cast<std::uint64_t>(until_goal_ns);
  interval = std::min(std::max(interval, shortest_ns_), max_delay_ns_);
  // Rings are looked at together: at multiples of the longest interval, of a half or a third of it, a quarter, a sixth
  // and so on.
  std::uint64_t grid = max_delay_ns_;
  while (grid > interval) grid /= 2;
  if (grid + grid / 3 <= interval) grid += grid / 3;
  interval_ns_ = grid;
  due_ns_ = grid == 0 ? now_ns : (now_ns / grid + 1) * grid;
}

}  // namespace rtev
