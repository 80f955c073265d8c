// SPDX-License-Identifier: MIT
#include "kernel/sched_records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <bit>
#include <cstddef>
#include <limits>

#include "kernel/syscall.hpp"

namespace rtev::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

constexpr std::uint64_t ms = 1'000'000;

class SchedDropsTest : public ::testing::Test {
 protected:
  /// As the BPF programs do it.
  void drop(std::size_t cpu, bool is_switch, std::uint64_t time) {
    rtev_sched_drops& drops = cpus[cpu];
    if (drops.switches + drops.wakeups == drops.taken) drops.first_ns = time;
    drops.last_ns = time;
    ++(is_switch ? drops.switches : drops.wakeups);
  }

  std::array<rtev_sched_drops, 3> cpus{};
  SchedDropCounters counters;
};

TEST_F(SchedDropsTest, ReportsNothingWithoutDrops) {
  EXPECT_THAT(counters.take(cpus, 10 * ms), IsEmpty());
  EXPECT_EQ(counters.switches() + counters.wakeups(), 0U);
}

TEST_F(SchedDropsTest, ReportsEachDropOnceWithItsTimes) {
  drop(1, true, 20 * ms);
  drop(1, false, 21 * ms);
  drop(1, true, 25 * ms);
  drop(2, false, 22 * ms);
  EXPECT_THAT(counters.take(cpus, 30 * ms),
              ElementsAre(SchedDrop{.cpu = 1, .switches = 2, .wakeups = 1, .first_ns = 20 * ms, .last_ns = 25 * ms},
                          SchedDrop{.cpu = 2, .switches = 0, .wakeups = 1, .first_ns = 22 * ms, .last_ns = 22 * ms}));
  EXPECT_THAT(counters.take(cpus, 31 * ms), IsEmpty());
  drop(1, true, 40 * ms);
  EXPECT_THAT(counters.take(cpus, 50 * ms),
              ElementsAre(SchedDrop{.cpu = 1, .switches = 1, .wakeups = 0, .first_ns = 40 * ms, .last_ns = 40 * ms}));
  EXPECT_EQ(counters.switches(), 3U);
  EXPECT_EQ(counters.wakeups(), 2U);
}

TEST_F(SchedDropsTest, ADropCountedDuringTakeKeepsItsOwnTime) {
  drop(0, true, 20 * ms);
  EXPECT_EQ(counters.take(cpus, 30 * ms).size(), 1U);
  // Counted after take() read the counts and before it wrote `taken`: first_ns is not updated.
  cpus[0].last_ns = 30 * ms;
  ++cpus[0].switches;
  const auto drops = counters.take(cpus, 40 * ms);
  ASSERT_EQ(drops.size(), 1U);
  EXPECT_EQ(drops[0].switches, 1U);
  EXPECT_GT(drops[0].first_ns, 29 * ms);
  EXPECT_LE(drops[0].first_ns, 30 * ms);
  EXPECT_EQ(drops[0].last_ns, 30 * ms);
}

TEST_F(SchedDropsTest, ADropJustBeforeTheLastCallKeepsItsTime) {
  EXPECT_THAT(counters.take(cpus, 30 * ms), IsEmpty());
  drop(0, false, 30 * ms - 100);
  EXPECT_THAT(counters.take(cpus, 40 * ms),
              ElementsAre(SchedDrop{
                  .cpu = 0, .switches = 0, .wakeups = 1, .first_ns = 30 * ms - 100, .last_ns = 30 * ms - 100}));
}

TEST(ThreadUsage, HasItsDelaysInNanoseconds) {
  rtev_usage raw{};
  raw.type = RTEV_USAGE;
  raw.tgid = 7;
  raw.role = RTEV_ROLE_BACKUP;
  raw.cpu_ns = 99;
  raw.delays[0] = 5;
  raw.delays[1] = RTEV_LONG_DELAY | 3;
  raw.delay_count = 2;
  const ThreadUsage usage = to_usage(std::bit_cast<rtev_sched>(raw));
  EXPECT_EQ(usage.pid, 7);
  EXPECT_EQ(usage.role, ThreadRole::backup);
  EXPECT_EQ(usage.cpu_ns, 99U);
  EXPECT_EQ(usage.delay_count, 2);
  EXPECT_EQ(usage.delays_ns[0], 5U);
  EXPECT_EQ(usage.delays_ns[1], 3 * 1024U);
  raw.delay_count = 200;
  EXPECT_EQ(to_usage(std::bit_cast<rtev_sched>(raw)).delay_count, RTEV_USAGE_DELAYS);
}

/// As the kernel's sched_switch tracepoint has it.
TEST(LeftState, FollowsFromTheTaskState) {
  struct Case {
    std::uint32_t task_state;
    LeftState state;
  };
  for (const auto& [task_state, state] :
       {Case{0, LeftState::preempted}, Case{0x1, LeftState::sleeping}, Case{0x2, LeftState::uninterruptible},
        Case{0x402, LeftState::idle}, Case{0x4, LeftState::stopped}, Case{0x8, LeftState::traced},
        Case{0x10, LeftState::dead}, Case{0x20, LeftState::dead}, Case{0x80, LeftState::dead},
        Case{0x40, LeftState::other}}) {
    EXPECT_EQ(left_state(task_state, false), state) << task_state;
    EXPECT_EQ(left_state(task_state, true), LeftState::preempted) << task_state;
  }
}

TEST(SchedRecord, SystemCalls) {
  EXPECT_EQ(syscall_of(RTEV_SYSCALL_UNKNOWN), Syscall::unknown);
  EXPECT_EQ(syscall_of(RTEV_SYSCALL_NONE), Syscall::none);
  EXPECT_EQ(syscall_of(SYS_pselect6), Syscall::select);
  EXPECT_EQ(syscall_of(SYS_ppoll), Syscall::poll);
  EXPECT_EQ(syscall_of(SYS_epoll_pwait), Syscall::epoll_wait);
  EXPECT_EQ(syscall_of(SYS_io_uring_enter), Syscall::io_uring_enter);
  EXPECT_EQ(syscall_of(SYS_read), Syscall::read);
  EXPECT_EQ(syscall_of(SYS_fdatasync), Syscall::fsync);
  EXPECT_EQ(syscall_of(SYS_getpid), Syscall::other);
  EXPECT_EQ(syscall_of(INT16_MAX), Syscall::other);
}

TEST(SchedRecord, ThreadsOfASwitch) {
  rtev_sched record{};
  record.cpu = 3;
  record.state = 0x1;
  record.syscall = SYS_fsync;
  record.prev = {.tgid = 7,
                 .tid = 8,
                 .domain = 2,
                 .prio = 120,
                 .role = RTEV_ROLE_BACKUP,
                 .flags = RTEV_TRACKED_THREAD | RTEV_HOLDS_LOCK,
                 .comm = "worker"};
  record.next = {.tgid = 9, .tid = 9, .domain = -1, .prio = 100, .role = 77, .flags = 0, .comm = {}};
  const SchedSwitch converted = to_switch(record);
  EXPECT_EQ(converted.cpu, 3u);
  EXPECT_EQ(converted.state, LeftState::sleeping);
  EXPECT_EQ(converted.syscall, Syscall::fsync);
  EXPECT_EQ(converted.prev.pid, 7);
  EXPECT_EQ(converted.prev.tid, 8);
  EXPECT_EQ(converted.prev.domain, 2);
  EXPECT_EQ(converted.prev.role, ThreadRole::backup);
  EXPECT_TRUE(converted.prev.tracked && converted.prev.holds_lock);
  EXPECT_EQ(converted.next.role, ThreadRole::unknown);
  EXPECT_FALSE(converted.next.tracked || converted.next.holds_lock);
  EXPECT_EQ(to_wakeup(record).by.tid, 8);
  EXPECT_EQ(to_wakeup(record).woken.tid, 9);
}

}  // namespace
}  // namespace rtev::kernel
