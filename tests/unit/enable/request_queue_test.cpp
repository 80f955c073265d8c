// SPDX-License-Identifier: MIT
// Requests of many users.
#include "enable/request_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rtev::enable {
namespace {

TEST(RequestQueueTest, UsersTakeTurns) {
  RequestQueue queue;
  for (const std::int32_t pid : {1, 2, 3}) queue.add({.pid = pid, .user = 1000});
  queue.add({.pid = 4, .user = 0});
  queue.add({.pid = 5, .user = 1001});
  std::vector<std::int32_t> order;
  while (const auto request = queue.take([](std::uint32_t) { return true; })) {
    order.push_back(request->pid);
    if (order.size() == 2) queue.add({.pid = 6, .user = 0});
  }
  EXPECT_THAT(order, ::testing::ElementsAre(1, 4, 5, 2, 6, 3));
}

TEST(RequestQueueTest, OfUsersWhoMayNotGoOnStay) {
  RequestQueue queue;
  queue.add({.pid = 1, .user = 1000});
  queue.add({.pid = 2, .user = 1001});
  const auto is_second = [](std::uint32_t user) { return user == 1001; };
  EXPECT_EQ(queue.take(is_second)->pid, 2);
  EXPECT_FALSE(queue.take(is_second));
  EXPECT_EQ(queue.take([](std::uint32_t) { return true; })->pid, 1);
  EXPECT_TRUE(queue.is_empty());
}

TEST(RequestQueueTest, HasOneForEachProcess) {
  RequestQueue queue;
  for (const std::uint32_t id : {1, 2, 3}) queue.add({.pid = 7, .user = 1000, .id = id});
  const auto request = queue.take([](std::uint32_t) { return true; });
  ASSERT_TRUE(request);
  EXPECT_EQ(request->id, 3u);
  EXPECT_TRUE(queue.is_empty());
}

TEST(RequestQueueTest, ThatWerePutOffComeAfterNewerOnes) {
  RequestQueue queue;
  queue.add({.pid = 7, .user = 1000, .id = 2});
  queue.add_again({.pid = 7, .user = 1000, .id = 1});
  queue.add_again({.pid = 8, .user = 1000, .id = 1});
  const auto any = [](std::uint32_t) { return true; };
  EXPECT_EQ(queue.take(any)->id, 2u);
  EXPECT_EQ(queue.take(any)->pid, 8);
  EXPECT_TRUE(queue.is_empty());
}

}  // namespace
}  // namespace rtev::enable
