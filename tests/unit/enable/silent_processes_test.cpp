// SPDX-License-Identifier: MIT
// Which processes are left alone after some whose memory did not answer, and who is charged for them.
#include "enable/silent_processes.hpp"

#include <gtest/gtest.h>

namespace rtev::enable {
namespace {

constexpr std::uint32_t user = 1000, other_user = 1001;

TEST(SilentProcessesTest, AProcessIsLeftAlone) {
  SilentProcesses silent;
  EXPECT_FALSE(silent.reason(1, 10, user));
  silent.add({.pid = 1, .start_ticks = 10, .user = user});
  EXPECT_TRUE(silent.reason(1, 10, user));
  EXPECT_FALSE(silent.reason(1, 11, user)) << "a later process with the pid";
  EXPECT_FALSE(silent.reason(2, 10, user));
  EXPECT_TRUE(silent.has_any_of(user));
  EXPECT_FALSE(silent.has_any_of(other_user));
}

TEST(SilentProcessesTest, AfterTwoOfAUserAllOfTheUserAreLeftAlone) {
  SilentProcesses silent;
  for (int times = 0; times < 3; ++times) silent.add({.pid = 1, .start_ticks = 10, .user = user});
  EXPECT_FALSE(silent.reason(3, 10, user)) << "it was one process";
  silent.add({.pid = 2, .start_ticks = 10, .user = user});
  EXPECT_TRUE(silent.reason(3, 10, user));
  EXPECT_FALSE(silent.reason(3, 10, other_user));
}

TEST(SilentProcessesTest, AreForgottenAfterATimeThatGrows) {
  constexpr std::uint64_t minute_ns = 60'000'000'000;
  SilentProcesses silent;
  const auto add_two = [&](std::uint64_t now_ns) {
    for (const std::int32_t pid : {1, 2}) silent.add({.pid = pid, .start_ticks = 10, .user = user}, now_ns);
  };
  add_two(0);
  EXPECT_TRUE(silent.reason(3, 10, user, 9 * minute_ns));
  EXPECT_FALSE(silent.reason(1, 10, user, 10 * minute_ns));
  add_two(10 * minute_ns);
  EXPECT_TRUE(silent.reason(3, 10, user, 29 * minute_ns));
  EXPECT_FALSE(silent.reason(3, 10, user, 30 * minute_ns));
  silent.add({.pid = 1, .start_ticks = 10, .user = user}, 30 * minute_ns);
  EXPECT_FALSE(silent.reason(3, 10, user, 31 * minute_ns)) << "one again";
}

TEST(SilentProcessesTest, AProcessAtWhichAWorkerEndsCountsTheSecondTime) {
  SilentProcesses silent;
  silent.add_end({.pid = 1, .start_ticks = 10, .user = user});
  silent.add_end({.pid = 1, .start_ticks = 11, .user = user});
  silent.add_end({.pid = 2, .start_ticks = 10, .user = user});
  EXPECT_FALSE(silent.reason(1, 10, user));
  silent.add_end({.pid = 1, .start_ticks = 10, .user = user});
  EXPECT_TRUE(silent.reason(1, 10, user));
  EXPECT_FALSE(silent.reason(2, 10, user));
  silent.add_end({.pid = 2, .start_ticks = 10, .user = user});
  EXPECT_TRUE(silent.reason(3, 10, user));
}

TEST(ProgressTest, WorkOnAnotherProcessCountsAlone) {
  const auto progress = Progress::create();
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->current().pid, 0);
  {
    const auto outer = progress->work_on(1, 10, user);
    const Progress::Work of_outer = progress->current();
    {
      const auto inner = progress->work_on(2, 20, other_user);
      EXPECT_EQ(progress->current().pid, 2);
      EXPECT_EQ(progress->current().user, other_user);
    }
    EXPECT_EQ(progress->current().pid, 1);
    EXPECT_EQ(progress->current().since_ns, of_outer.since_ns) << "its time goes on";
    {
      const auto idle = progress->idle();
      EXPECT_EQ(progress->current().pid, 0);
    }
    EXPECT_GT(progress->current().since_ns, of_outer.since_ns) << "nobody is charged for what the worker waited idly";
  }
  EXPECT_EQ(progress->current().pid, 0);
}

}  // namespace
}  // namespace rtev::enable
