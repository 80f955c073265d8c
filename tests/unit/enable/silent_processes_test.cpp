// SPDX-License-Identifier: MIT
// Which processes are left alone after some whose memory did not answer, and who is charged for them.
#include "enable/silent_processes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

TEST(SilentProcessesTest, AtTheEndRootComesFirstAndWhoDidNotAnswerLast) {
  SilentProcesses silent;
  silent.add({.pid = 1, .start_ticks = 10, .user = user});
  std::vector<std::uint32_t> users{user, other_user, 0};
  const auto rank = [&](std::uint32_t of) { return silent.rank(of); };
  std::ranges::stable_sort(users, {}, rank);
  EXPECT_EQ(users, (std::vector<std::uint32_t>{0, other_user, user}));
  silent.add({.pid = 2, .start_ticks = 10, .user = 0});
  std::ranges::stable_sort(users, {}, rank);
  EXPECT_EQ(users, (std::vector<std::uint32_t>{other_user, 0, user}));
}

TEST(SilentProcessesTest, AProcessAtWhichAWorkerEndsCountsTheSecondTime) {
  SilentProcesses silent;
  silent.add_end({.pid = 1, .start_ticks = 10, .user = user});
  silent.add_end({.pid = 1, .start_ticks = 11, .user = other_user});
  silent.add_end({.pid = 2, .start_ticks = 10, .user = user});
  EXPECT_FALSE(silent.reason(1, 10, user));
  silent.add_end({.pid = 1, .start_ticks = 10, .user = user});
  EXPECT_TRUE(silent.reason(1, 10, user));
  EXPECT_FALSE(silent.reason(2, 10, user));
  silent.add_end({.pid = 2, .start_ticks = 10, .user = user});
  EXPECT_TRUE(silent.reason(3, 10, user));
}

TEST(SilentProcessesTest, AUserAtWhoseProcessesWorkersEndIsLeftAlone) {
  constexpr std::uint64_t minute_ns = 60'000'000'000, begin_ns = 1000 * minute_ns;
  SilentProcesses silent;
  std::int32_t pid = 0;
  // Each time another process: none of them is to blame alone.
  const auto end = [&](std::uint64_t minute) {
    silent.add_end({.pid = ++pid, .start_ticks = 10, .user = user}, begin_ns + minute * minute_ns);
  };
  const auto is_left_alone = [&](std::uint64_t minute) {
    return silent.reason(1000, 10, user, begin_ns + minute * minute_ns).has_value();
  };
  for (const std::uint64_t minute : {0, 10, 20}) end(minute);
  EXPECT_FALSE(is_left_alone(20));
  end(80);
  EXPECT_FALSE(is_left_alone(80)) << "two of them are longer ago than an hour";
  for (const std::uint64_t minute : {80, 80}) end(minute);
  EXPECT_TRUE(is_left_alone(80));
  EXPECT_FALSE(silent.reason(1000, 10, other_user, begin_ns + 80 * minute_ns));
  EXPECT_FALSE(is_left_alone(90));
  end(90);
  EXPECT_TRUE(is_left_alone(109)) << "one is enough then, and it is remembered longer";
}

TEST(SilentProcessesTest, HooksOfAUserAreLeftForAnHourAfterOneThatEndedAWorker) {
  constexpr std::uint64_t hour_ns = 3'600'000'000'000;
  SilentProcesses silent;
  EXPECT_TRUE(silent.may_mend(user, hour_ns));
  silent.add_mend_end({.pid = 1, .start_ticks = 10, .user = user}, hour_ns);
  EXPECT_FALSE(silent.may_mend(user, 2 * hour_ns - 1));
  EXPECT_TRUE(silent.may_mend(user, 2 * hour_ns));
  EXPECT_TRUE(silent.may_mend(other_user, hour_ns));
  EXPECT_FALSE(silent.reason(2, 10, user, hour_ns)) << "one end does not bar the user's programs";
  for (std::int32_t pid = 2; pid <= 4; ++pid)
    silent.add_mend_end({.pid = pid, .start_ticks = 10, .user = user}, hour_ns);
  EXPECT_TRUE(silent.reason(5, 10, user, hour_ns)) << "but it counts as one";
}

TEST(SilentProcessesTest, OneUserCannotUseUpAllReplacements) {
  constexpr std::uint64_t second_ns = 1'000'000'000, begin_ns = 3'600 * second_ns;
  constexpr int max_replaced = 32;  // of the supervisor, in an hour
  SilentProcesses silent;
  int replaced = 0;
  std::int32_t pid = 0;
  // Every other process hangs, and the others crash the worker.
  for (std::uint64_t now_ns = begin_ns; now_ns < 2 * begin_ns; now_ns += second_ns) {
    if (silent.reason(++pid, 10, user, now_ns)) continue;
    const Progress::Work work{.pid = pid, .start_ticks = 10, .user = user};
    replaced++ % 2 == 0 ? silent.add(work, now_ns) : silent.add_end(work, now_ns);
  }
  EXPECT_LT(replaced, max_replaced / 2);
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
