// SPDX-License-Identifier: MIT
// A user whose programs are left alone does not fill the log of the host.
#include "enable/left_alone_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rtev::enable {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t log_interval_ns = LeftAloneLog::interval_ns;
constexpr std::uint32_t logged = 1000, other_logged = 1001;

TEST(LeftAloneLogTest, TheFirstOneOfAUserIsNamedAndTheOthersAreCounted) {
  LeftAloneLog log;
  EXPECT_FALSE(log.next_ns());
  EXPECT_TRUE(log.add(logged, 5));
  EXPECT_FALSE(log.next_ns()) << "nobody need wake up";
  for (int times = 0; times < 500; ++times) EXPECT_FALSE(log.add(logged, 6));
  EXPECT_TRUE(log.add(other_logged, 7));
  EXPECT_FALSE(log.add(other_logged, 8));
  EXPECT_EQ(log.next_ns(), 5 + log_interval_ns);
  EXPECT_THAT(log.take_due(4 + log_interval_ns), IsEmpty());
  EXPECT_THAT(log.take_due(5 + log_interval_ns), ElementsAre(HasSubstr(" 500 more programs of user 1000 ")));
  EXPECT_EQ(log.next_ns(), 7 + log_interval_ns);
  EXPECT_THAT(log.take_due(7 + log_interval_ns), ElementsAre(HasSubstr(" 1 more program of user 1001 ")));
  EXPECT_FALSE(log.next_ns());
}

TEST(LeftAloneLogTest, ThereIsALineAMinuteAtTheMost) {
  LeftAloneLog log;
  std::size_t lines = 0;
  for (std::uint64_t now_ns = 0; now_ns < 10 * log_interval_ns; now_ns += log_interval_ns / 64) {
    lines += log.add(logged, now_ns);
    lines += log.take_due(now_ns).size();
  }
  EXPECT_EQ(lines, 10u);
}

TEST(LeftAloneLogTest, AfterAMinuteWithoutAnyTheNextOneIsNamed) {
  LeftAloneLog log;
  EXPECT_TRUE(log.add(logged, 0));
  EXPECT_FALSE(log.add(logged, log_interval_ns - 1));
  EXPECT_EQ(log.take_due(log_interval_ns).size(), 1u);
  EXPECT_FALSE(log.add(logged, 2 * log_interval_ns - 1));
  EXPECT_EQ(log.take_due(2 * log_interval_ns).size(), 1u);
  EXPECT_TRUE(log.add(logged, 3 * log_interval_ns));
}

TEST(LeftAloneLogTest, WhatWasCountedIsLoggedAtTheEnd) {
  LeftAloneLog log;
  for (int times = 0; times < 3; ++times) log.add(logged, 0);
  EXPECT_THAT(log.take_all(), ElementsAre(HasSubstr(" 2 more programs ")));
  EXPECT_THAT(log.take_all(), IsEmpty());
}

}  // namespace
}  // namespace rtev::enable
