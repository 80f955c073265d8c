// SPDX-License-Identifier: MIT
#include "analysis/pauses/sample_history.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

class SampleHistoryTest : public testing::Test {
 protected:
  void add(std::uint64_t time_ns, StackIndex stack, std::uint64_t ns, SampleKind kind = SampleKind::on_cpu) {
    Event event{};
    event.time = time_ns;
    event.id = static_cast<std::uint16_t>(kind);
    Sample sample{};
    sample.pid = sample.tid = tid;
    sample.stack = stack;
    sample.weight = ns;
    history.add(event, sample);
  }
  static constexpr std::int32_t tid = 5;
  SampleHistory history;
};

TEST_F(SampleHistoryTest, TheStackWithMostTimeIsFirst) {
  add(100, 1, 10);
  add(200, 2, 10);
  add(300, 2, 10);
  add(400, 1, 50, SampleKind::off_cpu);
  add(900, 3, 10);
  const std::vector<SeenStack> seen = history.between(tid, 100, 500);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0], (SeenStack{.stack = 1, .kind = SampleKind::off_cpu, .samples = 1, .of_samples = 1, .ns = 50}));
  EXPECT_EQ(seen[1], (SeenStack{.stack = 2, .kind = SampleKind::on_cpu, .samples = 2, .of_samples = 3, .ns = 20}));
  EXPECT_EQ(seen[2], (SeenStack{.stack = 1, .kind = SampleKind::on_cpu, .samples = 1, .of_samples = 3, .ns = 10}));
}

TEST_F(SampleHistoryTest, WhatIsLeftOutIsCounted) {
  for (StackIndex stack = 1; stack <= 100; ++stack) add(stack, stack, 1000);
  add(200, 7, 1, SampleKind::off_cpu);
  const std::vector<SeenStack> seen = history.between(tid, 0, 500);
  ASSERT_EQ(seen.size(), SampleHistory::max_stacks + 1);
  EXPECT_EQ(seen.front().of_samples, 100U);
  EXPECT_EQ(seen.back().kind, SampleKind::off_cpu) << "those of one kind do not push out the other";
}

}  // namespace
}  // namespace rtev
