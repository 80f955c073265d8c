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
  while (!queue.is_empty()) {
    order.push_back(queue.take().pid);
    if (order.size() == 2) queue.add({.pid = 6, .user = 0});
  }
  EXPECT_THAT(order, ::testing::ElementsAre(1, 5, 4, 2, 6, 3));
}

}  // namespace
}  // namespace rtev::enable
