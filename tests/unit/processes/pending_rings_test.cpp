// SPDX-License-Identifier: MIT
#include "processes/pending_rings.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(Births, AreTriedLessAndLessOftenAndThenGivenUp) {
  Births births;
  EXPECT_EQ(births.next_look_ns(), std::nullopt);
  births.add(7, {.time_ns = second});
  std::uint64_t now = second, last_pause = 0;
  int tries = 0;
  while (const auto next = births.next_look_ns()) {
    const std::uint64_t pause = std::max(*next, now) - now;
    EXPECT_GE(pause, last_pause);
    EXPECT_LE(pause, second / 20);
    last_pause = pause;
    now += pause;
    births.look(now, [&](std::int32_t pid, Births::Birth&, bool) {
      EXPECT_EQ(pid, 7);
      ++tries;
      return false;
    });
    ASSERT_LT(tries, 200);
  }
  EXPECT_GT(now, 3 * second);
  EXPECT_LT(now, 4 * second);
  EXPECT_EQ(births.given_up(), 1U);
}

TEST(Births, LateNewsAreNoReasonToGiveUp) {
  Births births;
  births.add(7, {.time_ns = second});
  births.look(10 * second, [](std::int32_t, Births::Birth&, bool) { return false; });
  EXPECT_TRUE(births.take(7)) << "its end may be told even later";
  EXPECT_EQ(births.given_up(), 0U);
}

TEST(Births, DealtWithIsForgottenAndNotCounted) {
  Births births;
  births.add(7, {.time_ns = second});
  births.add(8, {.time_ns = second});
  births.look(second, [](std::int32_t pid, Births::Birth&, bool) { return pid == 7; });
  EXPECT_FALSE(births.take(7));
  EXPECT_TRUE(births.take(8)) << "the end of a process is its last chance";
  EXPECT_EQ(births.next_look_ns(), std::nullopt);
  EXPECT_EQ(births.given_up(), 0U);
}

TEST(Births, OneAProcess) {
  Births births;
  for (std::uint64_t time = 1; time <= 3000; ++time) births.add(7, {.time_ns = time});
  int tries = 0;
  births.look(second, [&](std::int32_t, Births::Birth& birth, bool) {
    EXPECT_EQ(birth.time_ns, 3000U);
    ++tries;
    return true;
  });
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(births.given_up(), 2999U) << "the others were announced and never read";
}

TEST(Births, ARingThatIsAnnouncedTwiceIsOne) {
  Births births;
  for (const std::uint64_t inode : {5, 5, 6, 6, 6})
    births.add(7, {.time_ns = 1, .place = FilePlace{.device = 1, .inode = inode, .path = "/7.events"}});
  EXPECT_EQ(births.given_up(), 1U);
}

}  // namespace
}  // namespace rtev
