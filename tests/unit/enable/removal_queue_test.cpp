// SPDX-License-Identifier: MIT
// In which order files of rings are removed, of many users.
#include "enable/removal_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rtev::enable {
namespace {

class RemovalQueueTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t second_ns = 1'000'000'000, now_ns = 1000 * second_ns;

  void add(std::uint32_t user, std::initializer_list<int> removals) {
    for (const int removal : removals) queue_.add(user, removal);
  }
  std::vector<int> take_all(std::uint64_t at_ns = now_ns) {
    std::vector<int> order;
    while (const auto next = queue_.take(at_ns)) order.push_back(next->second);
    return order;
  }
  std::vector<int> take_left() {
    std::vector<int> order;
    while (const auto next = queue_.take_left(now_ns)) order.push_back(next->second);
    return order;
  }

  UserCosts costs_;
  RemovalQueue<int> queue_{costs_};
};

TEST_F(RemovalQueueTest, UsersTakeTurns) {
  add(1000, {1, 2, 3});
  add(1001, {4});
  add(0, {5, 6});
  EXPECT_EQ(queue_.size(), 6u);
  EXPECT_EQ(queue_.size_of(1000), 3u);
  EXPECT_THAT(take_all(), ::testing::ElementsAre(1, 4, 5, 2, 6, 3));
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_EQ(queue_.size_of(1000), 0u);
}

TEST_F(RemovalQueueTest, WhoHasUsedUpHisShareOfTimeWaits) {
  add(1000, {1, 2});
  add(1001, {3});
  costs_.add(1000, 0, 2 * second_ns, 0, now_ns);
  EXPECT_THAT(take_all(), ::testing::ElementsAre(3));
  EXPECT_FALSE(queue_.is_due(now_ns));
  EXPECT_FALSE(queue_.is_empty());
  EXPECT_TRUE(queue_.is_due(now_ns + 8 * second_ns));
  EXPECT_THAT(take_all(now_ns + 8 * second_ns), ::testing::ElementsAre(1, 2));
}

TEST_F(RemovalQueueTest, AtTheEndEventsOfOthersGoOffFirst) {
  add(1000, {1});
  EXPECT_TRUE(queue_.is_due(now_ns));
  queue_.finish();
  EXPECT_FALSE(queue_.is_due(now_ns));
  EXPECT_FALSE(queue_.take(now_ns));
  EXPECT_THAT(take_left(), ::testing::ElementsAre(1));
}

TEST_F(RemovalQueueTest, AtTheEndRootComesFirstAndWhoKeptOthersWaitingLast) {
  add(1000, {1, 2});
  add(1001, {3, 4});
  add(1002, {5});
  add(0, {6, 7});
  costs_.add(1000, 0, 2 * second_ns, 2, now_ns);
  costs_.add(1001, 0, second_ns, 1, now_ns);
  EXPECT_THAT(take_left(), ::testing::ElementsAre(6, 7, 5, 3, 4, 1, 2));
}

TEST_F(RemovalQueueTest, AtTheEndUsersOfTheSameRankTakeTurns) {
  add(1000, {1, 2});
  add(1001, {3, 4});
  EXPECT_THAT(take_left(), ::testing::ElementsAre(1, 3, 2, 4));
}

TEST_F(RemovalQueueTest, AtTheEndWhoKeepsOthersWaitingThenComesLastFromThenOn) {
  add(1000, {1, 2});
  add(1001, {3, 4});
  EXPECT_EQ(queue_.take_left(now_ns)->second, 1);
  costs_.add(1000, 0, second_ns, 1, now_ns);
  EXPECT_THAT(take_left(), ::testing::ElementsAre(3, 4, 2));
}

TEST_F(RemovalQueueTest, AtTheEndWhoseDirectoriesAnswerSlowlyComesLast) {
  add(1000, {1, 2, 3});
  add(1001, {4, 5});
  EXPECT_EQ(queue_.take_left(now_ns)->second, 1);
  costs_.add(1000, 0, second_ns * 95 / 100, 0, now_ns);
  EXPECT_EQ(queue_.take_left(now_ns)->second, 4);
  costs_.add(1001, second_ns / 1000, second_ns / 1000, 0, now_ns);
  EXPECT_THAT(take_left(), ::testing::ElementsAre(5, 2, 3));
}

TEST_F(RemovalQueueTest, ThoseOfAProcessAreTakenAtOnce) {
  add(1000, {1, 2, 3});
  add(1001, {5});
  const auto is_odd = [](int removal) { return removal % 2 != 0; };
  EXPECT_THAT(queue_.take_all(1000, is_odd), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(queue_.take_all(1002, is_odd), ::testing::IsEmpty());
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_THAT(queue_.take_all(1001, is_odd), ::testing::ElementsAre(5));
  EXPECT_THAT(take_all(), ::testing::ElementsAre(2)) << "and users without any have no turn";
}

TEST(UserCostsTest, AUserHasATenthOfACpuAndAQuarterOfTheTime) {
  constexpr std::uint64_t second_ns = 1'000'000'000, now_ns = 1000 * second_ns;
  UserCosts costs;
  EXPECT_TRUE(costs.has_time_for(1000, now_ns));
  costs.add(1000, second_ns, second_ns, 0, now_ns);
  EXPECT_FALSE(costs.has_time_for(1000, now_ns + 4 * second_ns));
  EXPECT_TRUE(costs.has_time_for(1000, now_ns + 6 * second_ns));
  EXPECT_TRUE(costs.has_time_for(1001, now_ns));
  costs.add(1001, 0, second_ns, 0, now_ns);
  EXPECT_TRUE(costs.has_time_for(1001, now_ns)) << "it waited only";
  costs.add(1001, 0, second_ns, 0, now_ns);
  EXPECT_FALSE(costs.has_time_for(1001, now_ns));
}

TEST(UserCostsTest, DirectoriesThatDoNotAnswerAreForgottenAfterATimeThatGrows) {
  constexpr std::uint64_t second_ns = 1'000'000'000, now_ns = 1000 * second_ns;
  UserCosts costs;
  const auto is_kept = [&](std::uint64_t later_ns) {
    costs.forget(1000, now_ns + later_ns);
    EXPECT_EQ(costs.silent_directories(1000).empty(), costs.unanswered(1000) == 0);
    return costs.unanswered(1000) > 0;
  };
  const auto add = [&](std::uint64_t later_ns) {
    costs.silent_directories(1000).insert("/home/user");
    costs.add(1000, 0, second_ns, 1, now_ns + later_ns);
  };
  add(0);
  add(second_ns);
  EXPECT_EQ(costs.unanswered(1000), 2);
  EXPECT_EQ(costs.unanswered(1001), 0);
  EXPECT_TRUE(is_kept(5 * second_ns));
  EXPECT_FALSE(is_kept(6 * second_ns));
  add(6 * second_ns);
  EXPECT_TRUE(is_kept(15 * second_ns)) << "longer each time";
  EXPECT_FALSE(is_kept(16 * second_ns));
}

}  // namespace
}  // namespace rtev::enable
