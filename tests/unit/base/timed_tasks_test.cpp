// SPDX-License-Identifier: MIT
#include "base/timed_tasks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rtev {
namespace {

using testing::Eq;
using testing::Optional;

class TimedTasksTest : public testing::Test {
 protected:
  TimedTasks tasks_;
  std::string ran_;
  TimedTask first_{tasks_, [this](std::uint64_t now_ns) { ran_ += "first at " + std::to_string(now_ns) + " "; }};
  TimedTask second_{tasks_, [this](std::uint64_t now_ns) { ran_ += "second at " + std::to_string(now_ns) + " "; }};
};

TEST_F(TimedTasksTest, RunOnceWhenTheyAreDue) {
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
  first_.at(20);
  second_.at(10);
  EXPECT_THAT(tasks_.next_due_ns(), Optional(10));
  tasks_.run(9);
  EXPECT_EQ(ran_, "");
  tasks_.run(15);
  EXPECT_EQ(ran_, "second at 15 ");
  EXPECT_THAT(tasks_.next_due_ns(), Optional(20));
  tasks_.run(20);
  tasks_.run(30);
  EXPECT_EQ(ran_, "second at 15 first at 20 ");
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt)) << "neither said when it is due again";
}

TEST_F(TimedTasksTest, RunInTheOrderInWhichTheyWereMade) {
  second_.at(1);
  first_.at_once();
  tasks_.run(1);
  EXPECT_EQ(ran_, "first at 1 second at 1 ");
}

TEST_F(TimedTasksTest, HaveOneTime) {
  first_.at(20);
  first_.by(30);
  EXPECT_THAT(first_.due_ns(), Optional(20));
  first_.by(10);
  EXPECT_THAT(first_.due_ns(), Optional(10));
  first_.at(40);
  EXPECT_THAT(first_.due_ns(), Optional(40));
  first_.at(std::nullopt);
  tasks_.run(100);
  EXPECT_EQ(ran_, "");
}

TEST_F(TimedTasksTest, SayThemselvesWhenTheyAreDueAgain) {
  TimedTask repeated(tasks_, [&](std::uint64_t now_ns) { repeated.at(now_ns + 5); });
  repeated.at(10);
  tasks_.run(12);
  EXPECT_THAT(tasks_.next_due_ns(), Optional(17));
}

TEST_F(TimedTasksTest, WithoutAFunctionOnlyEndASleep) {
  TimedTask wakes(tasks_);
  wakes.at(10);
  EXPECT_THAT(tasks_.next_due_ns(), Optional(10));
  tasks_.run(10);
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
}

TEST_F(TimedTasksTest, AreForgottenAtTheirEnd) {
  {
    TimedTask ends(tasks_);
    ends.at_once();
    EXPECT_THAT(tasks_.next_due_ns(), Optional(0));
  }
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
  tasks_.run(1);
}

}  // namespace
}  // namespace rtev
