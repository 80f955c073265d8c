// SPDX-License-Identifier: MIT
#include "processes/naming_hold.hpp"

#include <gtest/gtest.h>

namespace rtev::test {
namespace {

constexpr std::uint64_t start = 1'000'000'000'000;
constexpr std::uint32_t alice = 1000, bob = 1001;

/// How long the events of all are held back, where the programs of these users wait for their names since a while.
class NamingHoldTest : public testing::Test {
 protected:
  std::uint64_t held(const UnnamedSince& unnamed) {
    const auto since = hold_.since(unnamed, now_);
    return since ? now_ - *since : 0;
  }
  /// Both for `duration`.
  void hold(std::uint32_t user, std::uint64_t duration) {
    for (const std::uint64_t since = now_, end = now_ + duration; now_ <= end; now_ += ms) held({{user, since}});
  }
  void pass(std::uint64_t duration) {
    now_ += duration;
    held({});
  }

  std::uint64_t now_ = start;
  NamingHold hold_;
};

TEST_F(NamingHoldTest, NothingWaits) {
  EXPECT_EQ(held({}), 0u);
}

TEST_F(NamingHoldTest, AProgramHoldsUntilItsUserHasUsedUpTheAllowance) {
  const UnnamedSince unnamed{{alice, now_}};
  held(unnamed);
  std::uint64_t longest = 0;
  for (; now_ < start + 1000 * ms; now_ += ms) longest = std::max(longest, held(unnamed));
  EXPECT_NEAR(static_cast<double>(longest), NamingHold::free_ns + NamingHold::allowance_ns, 2 * ms);
  EXPECT_EQ(held(unnamed), NamingHold::free_ns) << "and then only for what is free";
}

TEST_F(NamingHoldTest, OtherUsersHaveTheirOwn) {
  hold(alice, 1000 * ms);
  EXPECT_EQ(held({{alice, now_ - 100 * ms}}), NamingHold::free_ns);
  EXPECT_EQ(held({{bob, now_ - 100 * ms}}), 100 * ms);
}

TEST_F(NamingHoldTest, ItGrowsAgain) {
  hold(alice, 1000 * ms);
  pass(NamingHold::refill_interval * 100 * ms);
  const UnnamedSince unnamed{{alice, now_ - 100 * ms}};
  EXPECT_EQ(held(unnamed), 100 * ms);
  pass(NamingHold::refill_interval * NamingHold::allowance_ns);
  EXPECT_EQ(held({{alice, now_ - 200 * ms}}), 200 * ms);
}

TEST_F(NamingHoldTest, ShortInspectionsTakeNothing) {
  for (int i = 0; i < 100; ++i) hold(alice, 40 * ms);
  EXPECT_EQ(held({{alice, now_ - 200 * ms}}), 200 * ms);
}

}  // namespace
}  // namespace rtev::test
