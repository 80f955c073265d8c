// SPDX-License-Identifier: MIT
#include "base/ring_buffer.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace rtev::test {
namespace {

TEST(RingBuffer, IsAQueue) {
  std::mt19937 random(7);
  RingBuffer<int> buffer;
  std::deque<int> expected;
  // It grows and shrinks, several times.
  for (int step = 0; step < 20'000; ++step) {
    const bool grows = step / 2000 % 2 == 0;
    if (expected.empty() || random() % 8 < (grows ? 6 : 2)) {
      buffer.push_back(step);
      expected.push_back(step);
    } else {
      buffer.pop_front();
      expected.pop_front();
    }
    ASSERT_EQ(buffer.size(), expected.size());
    ASSERT_EQ(buffer.empty(), expected.empty());
    if (!expected.empty()) {
      ASSERT_EQ(buffer.front(), expected.front());
    }
    if (step % 100 != 0) continue;
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(buffer[i], expected[i]) << step;
  }
}

}  // namespace
}  // namespace rtev::test
