// SPDX-License-Identifier: MIT
#include "processes/rings/pending_rings.hpp"

#include <gtest/gtest.h>

#include <map>

namespace rtev {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(PendingRings, AreRetriedLessAndLessOftenAndThenForgotten) {
  PendingRings rings;
  EXPECT_EQ(rings.next_try_ns(), std::nullopt);
  rings.add(7, {.announced_ns = second});
  std::uint64_t now = second, last_pause = 0;
  int tries = 0, last_tries = 0;
  while (const auto next = rings.next_try_ns()) {
    const std::uint64_t pause = std::max(*next, now) - now;
    EXPECT_GE(pause, last_pause);
    EXPECT_LE(pause, second / 20);
    last_pause = pause;
    now += pause;
    rings.retry(now, [&](std::int32_t pid, PendingRing&, bool is_last) {
      EXPECT_EQ(pid, 7);
      ++tries;
      last_tries += is_last;
      return false;
    });
    ASSERT_LT(tries, 200);
  }
  EXPECT_GT(now, 3 * second);
  EXPECT_LT(now, 4 * second);
  EXPECT_EQ(last_tries, 1);
}

TEST(PendingRings, ALateRecordIsNoReasonToGiveUp) {
  PendingRings rings;
  rings.add(7, {.announced_ns = second});
  rings.retry(10 * second, [](std::int32_t, PendingRing&, bool is_last) {
    EXPECT_FALSE(is_last);
    return false;
  });
  EXPECT_TRUE(rings.take(7)) << "the record of its end may come even later";
}

TEST(PendingRings, OpenedRingIsForgotten) {
  PendingRings rings;
  rings.add(7, {.announced_ns = second});
  rings.add(8, {.announced_ns = second});
  rings.retry(second, [](std::int32_t pid, PendingRing&, bool) { return pid == 7; });
  EXPECT_FALSE(rings.take(7));
  EXPECT_TRUE(rings.take(8)) << "the end of a process is the last chance of its ring";
  EXPECT_EQ(rings.next_try_ns(), std::nullopt);
}

TEST(PendingRings, ARingThatWasNotReadyWasNotWritten) {
  PendingRings rings;
  const auto look = [&](std::uint64_t now) {
    rings.retry(now, [](std::int32_t, PendingRing&, bool) { return false; });
    return rings.oldest_ns();
  };
  rings.add(7, {.announced_ns = second});
  EXPECT_EQ(look(second + 1), second) << "its file is not known";
  rings.add(7, {.announced_ns = second, .opened = std::vector<OpenedRing>(1)});
  EXPECT_EQ(look(second + 2), second + 2);
  rings.add(8, {.announced_ns = second + 1});
  EXPECT_EQ(rings.oldest_ns(), second + 1);
}

TEST(PendingRings, DistrustedOnesHoldNothingBackAndAreTriedSeldom) {
  PendingRings rings;
  rings.add(7, {.announced_ns = second, .distrusted = true});
  EXPECT_EQ(rings.oldest_ns(), std::nullopt);
  rings.add(8, {.announced_ns = second + 1});
  EXPECT_EQ(rings.oldest_ns(), second + 1);
  std::map<std::int32_t, int> tries;
  for (std::uint64_t now = second; now < second + 39'000'000; now += 100'000)
    rings.retry(now, [&](std::int32_t pid, PendingRing&, bool) { return ++tries[pid] > 100; });
  EXPECT_EQ(tries[7], 1);
  EXPECT_GT(tries[8], 4);
}

TEST(PendingRings, OneAProcess) {
  PendingRings rings;
  EXPECT_TRUE(rings.add(7, {.announced_ns = 1}));
  for (std::uint64_t time = 2; time <= 3000; ++time)
    EXPECT_FALSE(rings.add(7, {.announced_ns = time})) << "the one before was announced and never read";
  int tries = 0;
  rings.retry(second, [&](std::int32_t, PendingRing& ring, bool) {
    EXPECT_EQ(ring.announced_ns, 3000U);
    ++tries;
    return true;
  });
  EXPECT_EQ(tries, 1);
}

TEST(PendingRings, ARingThatIsAnnouncedTwiceIsOne) {
  PendingRings rings;
  int missed = 0;
  for (const std::uint64_t inode : {5, 5, 6, 6, 6})
    missed += !rings.add(7, {.announced_ns = 1, .announced = AnnouncedRing{.place = {.device = 1, .inode = inode}}});
  EXPECT_EQ(missed, 1);
}

}  // namespace
}  // namespace rtev
