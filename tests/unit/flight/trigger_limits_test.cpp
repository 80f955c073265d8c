// SPDX-License-Identifier: MIT
#include "flight/trigger_limits.hpp"

#include <gtest/gtest.h>

#include <string>

#include "unit/flight/flight_times.hpp"

namespace rtev::flight {
namespace {

struct Limits : TriggerLimits {
  using TriggerLimits::TriggerLimits;

  std::optional<Suppressed> check(std::size_t condition, const std::string& program, std::uint64_t time_ns,
                                  std::uint32_t user = 0) {
    return TriggerLimits::check(condition, {.user = user, .name = program}, time_ns, [this] { return users; });
  }
  std::size_t users = 1;
};

Limits make_limits(std::size_t max_dumps = 100) {
  return Limits(
      {.cooldown_ns = 30 * second, .rearm_ns = 10 * second, .max_dumps = max_dumps, .period_ns = 3600 * second});
}

TEST(TriggerLimits, IsNotArmedAtFirst) {
  Limits limits = make_limits();
  limits.arm_at(10 * second);
  EXPECT_EQ(limits.check(0, "server", 9 * second), Suppressed::not_armed);
  // Trouble that goes on counts once it is armed.
  EXPECT_EQ(limits.check(0, "server", 10 * second), std::nullopt);
}

TEST(TriggerLimits, CountsOnceWhatStaysTrue) {
  Limits limits = make_limits();
  EXPECT_EQ(limits.check(0, "server", second), std::nullopt);
  // Once in the time after which it would count again: a metric that counts each event says nothing.
  for (std::uint64_t time = 2; time < 1000; time += 9)
    EXPECT_EQ(limits.check(0, "server", time * second), time % 2 == 0 ? Suppressed::repeated : Suppressed::ongoing);
  EXPECT_EQ(limits.check(0, "server", 1100 * second), std::nullopt);
}

TEST(TriggerLimits, WaitsAfterADumpOfTheSameProgram) {
  Limits limits = make_limits();
  EXPECT_EQ(limits.check(0, "server", second), std::nullopt);
  EXPECT_EQ(limits.check(1, "server", 2 * second), Suppressed::cooldown);
  EXPECT_EQ(limits.check(1, "other", 2 * second), std::nullopt);
  EXPECT_EQ(limits.check(1, "server", 31 * second), std::nullopt);
}

TEST(TriggerLimits, CountsDumpsInASlidingPeriod) {
  Limits limits = make_limits(2);
  EXPECT_EQ(limits.check(0, "a", 1 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "b", 2000 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "c", 3000 * second), Suppressed::max_dumps);
  EXPECT_EQ(limits.check(0, "d", 3601 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "e", 3602 * second), Suppressed::max_dumps);
}

TEST(TriggerLimits, ForgetsProgramsWithHostileNames) {
  Limits limits = make_limits();
  for (int i = 0; i < 100'000; ++i) limits.check(0, std::to_string(i), second + static_cast<std::uint64_t>(i));
  EXPECT_EQ(limits.check(0, "server", 2 * second), Suppressed::max_dumps);
}

TEST(TriggerLimits, AProgramOfAnotherUserIsAnotherOne) {
  Limits limits = make_limits();
  limits.users = 2;
  EXPECT_EQ(limits.check(0, "server", second, 1000), std::nullopt);
  EXPECT_EQ(limits.check(0, "server", 2 * second, 0), std::nullopt);
  EXPECT_EQ(limits.check(1, "server", 3 * second, 0), Suppressed::cooldown);
  EXPECT_EQ(limits.check(0, "server", 3 * second, 1000), Suppressed::repeated);
}

TEST(TriggerLimits, UsersHaveSharesOfTheDumps) {
  Limits limits = make_limits(10);
  limits.users = 2;
  for (int i = 0; i < 100; ++i) {
    const auto suppressed = limits.check(0, std::to_string(i), second, 1000);
    EXPECT_EQ(suppressed.has_value(), i >= 5) << i;
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limits.check(0, std::to_string(i), 2 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "fifth", 2 * second), Suppressed::max_dumps);
  EXPECT_EQ(limits.check(0, "later", 3602 * second), std::nullopt);
}

TEST(TriggerLimits, EachOfManyUsersHasADump) {
  Limits limits = make_limits(10);
  limits.users = 21;
  for (std::uint32_t user = 1; user <= 21; ++user) {
    EXPECT_EQ(limits.check(0, "server", second, user),
              user <= 20 ? std::nullopt : std::optional(Suppressed::max_dumps));
    EXPECT_EQ(limits.check(0, "client", second, user), Suppressed::max_dumps);
  }
}

TEST(TriggerLimits, AUserWhoComesLateHasADump) {
  Limits limits = make_limits(10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limits.check(0, std::to_string(i), second, 1000), std::nullopt);
  limits.users = 2;
  EXPECT_EQ(limits.check(0, "server", 2 * second), std::nullopt);
  EXPECT_EQ(limits.check(0, "client", 2 * second), Suppressed::max_dumps);
}

TEST(TriggerLimits, NamesOfOneUserMakeItForgetNoOther) {
  Limits limits = make_limits();
  limits.users = 2;
  EXPECT_EQ(limits.check(0, "server", second), std::nullopt);
  for (int i = 0; i < 10'000; ++i) limits.check(0, std::to_string(i), second, 1000);
  EXPECT_EQ(limits.check(0, "server", 2 * second), Suppressed::repeated);
  EXPECT_EQ(limits.check(1, "server", 2 * second), Suppressed::cooldown);
}

}  // namespace
}  // namespace rtev::flight
