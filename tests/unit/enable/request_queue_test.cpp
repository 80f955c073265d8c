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
  for (const std::int32_t pid : {1, 2, 3}) queue.add(1000, {.pid = pid});
  queue.add(0, {.pid = 4});
  queue.add(1001, {.pid = 5});
  std::vector<std::int32_t> order;
  while (!queue.is_empty()) {
    order.push_back(queue.take().pid);
    if (order.size() == 2) queue.add(0, {.pid = 6});
  }
  EXPECT_THAT(order, ::testing::ElementsAre(1, 5, 4, 2, 6, 3));
}

}  // namespace
}  // namespace rtev::enable
