// SPDX-License-Identifier: MIT
#include "analysis/sample_history.hpp"

#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

class SampleHistoryTest : public testing::Test {
 protected:
  void feed(const Events& events) {
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) history.add(event, batch, world.registry);
  }
  void add(std::uint64_t time_ns, StackIndex stack, std::uint64_t ns, SampleKind kind = SampleKind::on_cpu,
           std::int32_t thread = tid) {
    Sample sample{};
    sample.pid = 4242;
    sample.tid = thread;
    sample.stack = stack;
    sample.weight = ns;
    feed(Events(0).add_record(time_ns, EventKind::sample, sample, static_cast<std::uint16_t>(kind), sample_stream));
  }
  static constexpr std::int32_t tid = 5;
  World world;
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

TEST_F(SampleHistoryTest, ThreadsAndProcessesThatEndedMakeRoom) {
  constexpr auto many = static_cast<std::int32_t>(SampleHistory::max_threads) + 100;
  for (std::int32_t thread = 1; thread <= many; ++thread) {
    add(100, 1, 10, SampleKind::on_cpu, thread);
    if (thread == many) break;
    SchedSwitch change{};
    change.state = LeftState::dead;
    change.prev.tid = thread;
    feed(Events(0).add_record(110, EventKind::sched_switch, change, 0, first_sched_stream));
  }
  EXPECT_EQ(history.between(many, 0, 200).size(), 1U);
  EXPECT_TRUE(history.between(1, 0, 200).empty());
  feed(Events(0).add_record(120, EventKind::process, ProcessRecord{world.process, 0, 0},
                            static_cast<std::uint16_t>(ProcessAction::exit)));
  EXPECT_TRUE(history.between(many, 0, 200).empty());
}

}  // namespace
}  // namespace rtev::test
