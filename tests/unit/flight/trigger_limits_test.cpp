// SPDX-License-Identifier: MIT
#include "flight/trigger_limits.hpp"

#include <gtest/gtest.h>

#include <string>

#include "unit/flight/flight_times.hpp"

namespace rtev::flight {
namespace {

TriggerLimits make_limits(std::size_t max_dumps = 100) {
  return TriggerLimits(
      {.cooldown_ns = 30 * second, .rearm_ns = 10 * second, .max_dumps = max_dumps, .period_ns = 3600 * second});
}

TEST(TriggerLimits, IsNotArmedAtFirst) {
  TriggerLimits limits = make_limits();
  limits.arm_at(10 * second);
  EXPECT_EQ(limits.check(0, "server", 9 * second), Suppressed::not_armed);
  // Trouble that goes on counts once it is armed.
  EXPECT_EQ(limits.check(0, "server", 10 * second), std::nullopt);
}

TEST(TriggerLimits, CountsOnceWhatStaysTrue) {
  TriggerLimits limits = make_limits();
  EXPECT_EQ(limits.check(0, "server", second), std::nullopt);
  // Once in the time after which it would count again: a metric that counts each event says nothing.
  for (std::uint64_t time = 2; time < 1000; time += 9)
    EXPECT_EQ(limits.check(0, "server", time * second), time % 2 == 0 ? Suppressed::repeated : Suppressed::ongoing);
  EXPECT_EQ(limits.check(0, "server", 1100 * second), std::nullopt);
}

TEST(TriggerLimits, WaitsAfterADumpOfTheSameProgram) {
  TriggerLimits limits = make_limits();
  EXPECT_EQ(limits.check(0, "server", second), std::nullopt);
  EXPECT_EQ(limits.check(1, "server", 2 * second), Suppressed::cooldown);
  EXPECT_EQ(limits.check(1, "other", 2 * second), std::nullopt);
  EXPECT_EQ(limits.check(1, "server", 31 * second), std::nullopt);
}

TEST(TriggerLimits, CountsDumpsInASlidingPeriod) {
  TriggerLimits limits = make_limits(2);
  EXPECT_EQ(limits.check(0, "a", 1 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "b", 2000 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "c", 3000 * second), Suppressed::max_dumps);
  EXPECT_EQ(limits.check(0, "d", 3601 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "e", 3602 * second), Suppressed::max_dumps);
}

TEST(TriggerLimits, ForgetsProgramsWithHostileNames) {
  TriggerLimits limits = make_limits();
  for (int i = 0; i < 100'000; ++i) limits.check(0, std::to_string(i), second + static_cast<std::uint64_t>(i));
  EXPECT_EQ(limits.check(0, "server", 2 * second), Suppressed::max_dumps);
}

}  // namespace
}  // namespace rtev::flight
