// SPDX-License-Identifier: MIT
#include "kernel/sched_buffers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <limits>

namespace rtev::kernel {
namespace {

TEST(SchedBufferPlan, DividesTheBudget) {
  EXPECT_EQ(plan_sched_buffers(16 << 20, 2), (SchedBufferPlan{.count = 2, .bytes = 8 << 20, .wakeup_shift = 21}));
  EXPECT_EQ(plan_sched_buffers(16 << 20, 64), (SchedBufferPlan{.count = 64, .bytes = 256 << 10, .wakeup_shift = 16}));
}

TEST(SchedBufferPlan, RoundsDownToAPowerOfTwo) {
  EXPECT_EQ(plan_sched_buffers(10 << 20, 3).bytes, 2U << 20);
}

TEST(SchedBufferPlan, ManyCpusShareBuffers) {
  EXPECT_EQ(plan_sched_buffers(16 << 20, 4096).count, max_sched_buffers);
}

TEST(SchedBufferPlan, KeepsToTheLimits) {
  EXPECT_EQ(plan_sched_buffers(0, 8).bytes, min_sched_buffer_bytes);
  EXPECT_EQ(plan_sched_buffers(1, 0).count, 1U);
  EXPECT_EQ(plan_sched_buffers(std::numeric_limits<std::size_t>::max(), 1).bytes, max_sched_buffer_bytes);
}

TEST(SchedBufferPlan, StaysWithinTheBudgetAndWakesAtAQuarter) {
  for (const std::size_t total : {4U << 20, 5U << 20, 100U << 20, 1U << 30})
    for (const unsigned cpus : {1U, 2U, 3U, 12U, 63U, 64U}) {
      const auto plan = plan_sched_buffers(total, cpus);
      EXPECT_TRUE(std::has_single_bit(plan.bytes));
      EXPECT_LE(std::size_t{plan.bytes} * plan.count, total);
      EXPECT_EQ(1U << plan.wakeup_shift, plan.bytes / 4);
    }
}

}  // namespace
}  // namespace rtev::kernel
