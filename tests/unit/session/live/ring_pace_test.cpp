// SPDX-License-Identifier: MIT
#include "session/live/ring_pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "unit/session/live/ringless_world.hpp"

namespace rtev {
namespace {

using test::milli;

constexpr std::uint64_t start = test::second, max_delay = 250 * milli;
constexpr std::uint64_t large_ring = 1 << 20, small_ring = 1 << 14, tiny_ring = 1 << 6;
constexpr kernel::RingActivity only_ran{.ran = true}, checked{.ran = true, .checked = true},
    fills_up{.ran = true, .checked = true, .fills_up = true};

/// From the read of a ring, whose process runs, to the next look.
std::uint64_t interval_after(std::uint64_t words, const kernel::RingActivity& activity, double fullest,
                             std::uint64_t elapsed_ns = max_delay, double fullest_before = 0) {
  RingPace pace(words, max_delay);
  pace.note(start, activity);
  pace.was_read(start, max_delay, fullest_before);
  pace.note(start + elapsed_ns, activity);
  pace.was_read(start + elapsed_ns, elapsed_ns, fullest);
  return *pace.due_ns() - start - elapsed_ns;
}

TEST(RingPace, ARingOfWhichNothingIsKnownIsNotAwaited) {
  RingPace pace(large_ring, max_delay);
  EXPECT_FALSE(pace.due_ns());
  pace.note(start, {});
  EXPECT_FALSE(pace.due_ns());
}

TEST(RingPace, RingsThatBpfChecksAreLookedAtWhenTheOutputWantsTheirEvents) {
  EXPECT_GE(interval_after(large_ring, checked, 0.01), max_delay / 2);
  EXPECT_LE(interval_after(large_ring, checked, 0.01), max_delay);
}

TEST(RingPace, OthersAreLookedAtBeforeTheFastestWriterCanFillThem) {
  EXPECT_LE(interval_after(large_ring, only_ran, 0), large_ring * 1000 / 42);
  EXPECT_LE(interval_after(small_ring, checked, 0), small_ring * 1000 / 42) << "the kernel's tick is too slow for it";
}

TEST(RingPace, ARingIsNotLookedAtMoreOftenBecauseItIsSmall) {
  RingPace pace(tiny_ring, max_delay);
  pace.note(start, only_ran);
  pace.was_read(start, milli, 1);
  EXPECT_GE(*pace.due_ns() - start, milli);
}

TEST(RingPace, AFullRingIsDueAtOnce) {
  RingPace pace(large_ring, max_delay);
  pace.note(start, checked);
  pace.was_read(start, max_delay, 0);
  EXPECT_FALSE(pace.is_due(start + milli));
  pace.note(start + milli, fills_up);
  EXPECT_TRUE(pace.is_due(start + milli));
}

TEST(RingPace, AQuarterOfARingMayFillUpAtItsRate) {
  RingPace pace(large_ring, max_delay);
  pace.note(start, checked);
  // Half of the ring in 20 ms: the first look of this pace may come early.
  pace.was_read(start, 20 * milli, 0.5);
  pace.was_read(start, 20 * milli, 0.5);
  const std::uint64_t first = *pace.due_ns();
  EXPECT_LE(first - start, 10 * milli);
  pace.was_read(first, 10 * milli, 0.25);
  EXPECT_LE(*pace.due_ns() - first, 10 * milli);
  EXPECT_GE(*pace.due_ns() - first, 5 * milli);
}

TEST(RingPace, RingsOfDifferentPacesAreLookedAtTogether) {
  RingPace slow(large_ring, max_delay), fast(large_ring, max_delay);
  slow.note(start, checked);
  fast.note(start, checked);
  slow.was_read(start + milli, max_delay, 0);
  fast.was_read(start + milli, max_delay, 0);
  constexpr std::uint64_t rounding = 1000;
  const std::uint64_t together = *slow.due_ns();
  int looks = 0;
  for (; *fast.due_ns() + rounding < together + max_delay; ++looks) fast.was_read(*fast.due_ns(), 100 * milli, 0.5);
  slow.was_read(together, max_delay, 0);
  EXPECT_GE(looks, 4);
  const std::uint64_t first = std::min(*fast.due_ns(), *slow.due_ns()), last = std::max(*fast.due_ns(), *slow.due_ns());
  EXPECT_LE(last - first, rounding);
}

TEST(RingPace, ARingIsNearlyDueAfterHalfOfItsInterval) {
  RingPace pace(large_ring, max_delay);
  EXPECT_FALSE(pace.is_nearly_due(start)) << "its process does not run";
  pace.note(start, checked);
  pace.was_read(start, max_delay, 0);
  EXPECT_FALSE(pace.is_nearly_due(start + max_delay / 2 - 1));
  EXPECT_TRUE(pace.is_nearly_due(start + max_delay / 2));
}

TEST(RingPace, ABurstIsLookedAtSoonAgain) {
  EXPECT_LE(interval_after(small_ring * 4, checked, 0.2, max_delay, 0.001), small_ring * 4 * 1000 / 42);
}

TEST(RingPace, AProcessThatRunsWithoutBeingCheckedIsWatchedClosely) {
  RingPace pace(large_ring, max_delay);
  pace.note(start, checked);
  pace.was_read(start, max_delay, 0);
  for (int ms = 1; ms < 100; ++ms) pace.note(start + ms * milli, only_ran);
  pace.was_read(start + 100 * milli, 100 * milli, 0);
  EXPECT_LE(*pace.due_ns() - start - 100 * milli, large_ring * 1000 / 42);
}

TEST(RingPace, WithoutADelayRingsAreAlwaysDue) {
  RingPace pace(large_ring, 0);
  pace.note(start, only_ran);
  EXPECT_TRUE(pace.is_due(start));
  pace.was_read(start, milli, 0);
  EXPECT_TRUE(pace.is_due(start));
}

}  // namespace
}  // namespace rtev
