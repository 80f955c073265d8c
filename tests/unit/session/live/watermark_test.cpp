// SPDX-License-Identifier: MIT
#include "session/live/watermark.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

constexpr std::uint64_t ms = 1'000'000, now = 5'000 * ms;

TEST(Watermark, HoldsEventsBackForTheSlack) {
  EXPECT_EQ(Watermark(true).at(now, {}), now - ms / 2);
  EXPECT_EQ(Watermark(false).at(now, {}), now - 40 * ms) << "interrupted threads are unknown";
}

TEST(Watermark, WaitsForAnInterruptedThread) {
  EXPECT_EQ(Watermark(true).at(now, {.interrupted_since = now - 10 * ms}), now - 10 * ms - ms / 2);
}

TEST(Watermark, WaitsForAnAnnouncedRing) {
  EXPECT_EQ(Watermark(true).at(now, {.unopened_since = now - 10 * ms}), now - 10 * ms - ms / 2);
  EXPECT_EQ(Watermark(true).at(now, {.interrupted_since = now - 10 * ms, .unopened_since = now - 30 * ms}),
            now - 30 * ms - ms / 2);
}

TEST(Watermark, DoesNotWaitForever) {
  EXPECT_EQ(Watermark(true).at(now, {.interrupted_since = now - 3'000 * ms}), now - 65 * ms);
  EXPECT_EQ(Watermark(true).at(now, {.unopened_since = 0}), now - 65 * ms);
  EXPECT_EQ(Watermark::oldest_interruption(now), now - 65 * ms);
}

TEST(Watermark, WaitsForASourceThatIsBehind) {
  EXPECT_EQ(Watermark(true).at(now, {.behind_since = now - 10 * ms}), now - 10 * ms);
  EXPECT_EQ(Watermark(true).at(now, {.unattributed_since = now - 400 * ms}), now - 400 * ms);
  EXPECT_EQ(Watermark(true).at(now, {.behind_since = now - 300 * ms, .unattributed_since = now - 400 * ms}),
            now - 400 * ms);
  EXPECT_EQ(Watermark(true).at(now, {.behind_since = now}), now - ms / 2) << "the slack remains";
}

TEST(Watermark, ASourceWithWrongTimesHoldsTheOthersBackForAShortTime) {
  EXPECT_EQ(Watermark(true).at(now, {.behind_since = 1}), now - 20 * ms);
  EXPECT_EQ(Watermark(true).at(now, {.unopened_since = 1, .unattributed_since = 1}), now - 1'000 * ms);
}

}  // namespace
}  // namespace rtev
