// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_sched.hpp"

#include <gmock/gmock.h>

#include "unit/formats/perfetto/perfetto_world.hpp"

namespace rtev::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class PerfettoSched : public PerfettoTest {
 protected:
  static Thread stranger(std::int32_t tid) { return make_thread(tid, tid, "bash", false); }
};

std::vector<std::pair<std::int32_t, std::int32_t>> pairs(const std::vector<PerfettoSwitch>& switches) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (const PerfettoSwitch& change : switches) pairs.emplace_back(change.prev, change.next);
  return pairs;
}

TEST_F(PerfettoSched, SwitchesAreTheKernels) {
  Thread busy = ours(pid, 0);
  busy.priority = 98;
  change(2'000, 1, idle(), busy);
  change(2'500, 1, busy, stranger(99), LeftState::preempted);
  const PerfettoTrace trace = finish();
  ASSERT_THAT(pairs(trace.switches), ElementsAre(std::pair(0, pid), std::pair(pid, 99), std::pair(99, 0)));
  EXPECT_EQ(trace.switches[0].cpu, 1U);
  EXPECT_EQ(trace.switches[0].time, 2'000U);
  EXPECT_EQ(trace.switches[0].prev_state, 0);
  EXPECT_EQ(trace.switches[0].next_prio, 98);
  EXPECT_EQ(trace.switches[0].next_comm, "server");
  EXPECT_EQ(trace.switches[1].prev_state, 0x100);
  EXPECT_EQ(trace.switches[1].prev_prio, 98);
  EXPECT_EQ(trace.threads.at(99).tgid, 99);
  EXPECT_EQ(trace.threads.at(99).name, "bash");
  EXPECT_EQ(trace.processes.at(99), "bash");
  EXPECT_EQ(trace.threads.at(pid).name, "domain 0");
}

TEST_F(PerfettoSched, StatesAreTheKernels) {
  constexpr std::array by_left_state{0x100, 0x1, 0x2, 0x4, 0x8, 0x10, 0x80, 0x40, 0x40};  // the last is not known
  std::uint64_t time = 2'000;
  for (std::size_t state = 0; state < by_left_state.size(); ++state) {
    change(++time, 0, idle(), ours(pid));
    change(++time, 0, ours(pid), idle(), static_cast<LeftState>(state));
  }
  const auto switches = finish().switches;
  ASSERT_THAT(switches, SizeIs(2 * by_left_state.size()));
  for (std::size_t i = 0; i < by_left_state.size(); ++i)
    EXPECT_EQ(switches[2 * i + 1].prev_state, by_left_state[i]) << i;
}

TEST_F(PerfettoSched, WhatNobodySawIsMadeUp) {
  change(2'000, 0, ours(pid), stranger(98));
  change(3'000, 0, stranger(99), ours(pid));
  const auto switches = finish().switches;
  EXPECT_THAT(pairs(switches), ElementsAre(std::pair(pid, 98), std::pair(98, 0), std::pair(0, 99), std::pair(99, pid),
                                           std::pair(pid, 0)));
  EXPECT_EQ(switches[1].time, 2'000U);  // how long it ran is not known
  EXPECT_EQ(switches[2].time, 3'000U);
  EXPECT_EQ(switches[4].time, 100'000U);
}

TEST_F(PerfettoSched, AThreadThatMovedUnseenLeavesItsCpu) {
  change(2'000, 0, idle(), ours(pid));
  change(3'000, 1, idle(), ours(pid));
  const auto switches = finish().switches;
  EXPECT_THAT(pairs(switches), ElementsAre(std::pair(0, pid), std::pair(pid, 0), std::pair(0, pid), std::pair(pid, 0)));
  EXPECT_EQ(switches[1].cpu, 0U);
}

TEST_F(PerfettoSched, WakersAreKnown) {
  change(2'000, 3, idle(), ours(4243));
  draw(sched().add_record(2'100, EventKind::wakeup, Wakeup{.cpu = 1, .woken = ours(pid), .by = ours(4243)}, 0, 1));
  draw(sched().add_record(2'200, EventKind::wakeup, Wakeup{.cpu = 1, .woken = ours(pid), .by = idle()}, 0, 1));
  const auto wakings = finish().wakings;
  ASSERT_THAT(wakings, SizeIs(2));
  EXPECT_EQ(std::tuple(wakings[0].cpu, wakings[0].target_cpu, wakings[0].waker, wakings[0].woken),
            std::tuple(3U, 1, 4243, pid));
  EXPECT_EQ(std::tuple(wakings[1].cpu, wakings[1].waker), std::tuple(1U, 0));
}

TEST_F(PerfettoSched, IdsOfThreadsThatEndedAreFree) {
  change(2'000, 0, idle(), ours(4243));
  change(3'000, 0, ours(4243), idle(), LeftState::dead);
  EXPECT_THAT(finish().freed, Contains(4243));
}

TEST_F(PerfettoSched, WithoutSchedulerEventsThereIsNoTraceOfThem) {
  draw(ring().add(2'000, EventKind::user_unit, 1));
  draw(sched().add_record(3'000, EventKind::process, ProcessRecord{world_.process, 0, 0},
                          static_cast<std::uint16_t>(ProcessAction::exit)));
  draw(ring().add(5'000'000'000, EventKind::user_unit, 1));
  const PerfettoTrace trace = finish({.end_ns = 6'000'000'000});
  EXPECT_THAT(trace.freed, IsEmpty());
  EXPECT_THAT(trace.switches, IsEmpty());
}

TEST_F(PerfettoSched, ACpuThatCannotBeIsNotDrawn) {
  change(2'000, UINT32_MAX, idle(), ours(pid));
  EXPECT_THAT(finish().switches, IsEmpty());
}

}  // namespace
}  // namespace rtev::test
