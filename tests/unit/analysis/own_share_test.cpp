// SPDX-License-Identifier: MIT
// How long traced threads waited for the tracer itself.
#include "analysis/own_share.hpp"

#include <gtest/gtest.h>

#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

class OwnShareTest : public testing::Test {
 protected:
  OwnShareTest() { own.header({.command_line = {"/opt/bin/rtev-bpf", "latency"}}); }

  void change(std::uint64_t time, const Thread& prev, const Thread& next, LeftState state = LeftState::preempted,
              std::uint32_t cpu = 0) {
    feed(Events(0).add_record(time, EventKind::sched_switch,
                              SchedSwitch{.cpu = cpu, .state = state, .prev = prev, .next = next}, 0,
                              first_sched_stream));
  }
  void wake(std::uint64_t time, const Thread& woken, std::uint32_t cpu = 0) {
    feed(Events(0).add_record(time, EventKind::wakeup, wakes(woken, nobody(), cpu), 0, first_sched_stream));
  }
  void feed(const Events& events) {
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) own.add(event, batch);
  }

  Thread program = a_thread(10, 10), tracer = a_thread(77, 78, -1, "rtev-bpf", false),
         helper = a_thread(80, 80, -1, "rtev-helper", false);
  OwnShare own;
};

TEST_F(OwnShareTest, APreemptedThreadWaitsForTheTracer) {
  change(100, program, tracer);
  change(400, tracer, program, LeftState::sleeping);
  EXPECT_EQ(own.figures().waits, 1U);
  EXPECT_EQ(own.figures().waited_ns, 300U);
  change(1000, program, helper);
  change(1100, helper, tracer, LeftState::sleeping);
  change(1600, tracer, program, LeftState::sleeping);
  EXPECT_EQ(own.figures().waits, 2U);
  EXPECT_EQ(own.figures().waited_ns, 900U);
  EXPECT_EQ(own.figures().longest_wait_ns, 600U);
}

TEST_F(OwnShareTest, AWokenThreadWaitsFromThenOn) {
  change(100, program, tracer, LeftState::sleeping);
  wake(350, program);
  change(400, tracer, program, LeftState::sleeping);
  EXPECT_EQ(own.figures().waited_ns, 50U);
}

TEST_F(OwnShareTest, WaitsForOthersDoNotCount) {
  change(100, program, competitor());
  change(200, competitor(), tracer);
  change(300, tracer, competitor(), LeftState::sleeping);
  change(900, competitor(), program);
  EXPECT_EQ(own.figures().waited_ns, 100U);
  change(1000, program, competitor());
  change(2000, competitor(), program);
  EXPECT_EQ(own.figures().waits, 1U);
}

TEST_F(OwnShareTest, OnlyWhatIsCertainCounts) {
  // Another thread entered after the tracer: when is unknown.
  change(100, program, tracer);
  change(400, competitor(), program);
  // It ran elsewhere afterwards.
  change(500, program, tracer);
  change(600, nobody(), program, LeftState::preempted, 1);
  // A sleeping thread waits for nothing.
  change(700, program, nobody(), LeftState::sleeping, 1);
  change(800, tracer, nobody(), LeftState::sleeping);
  // Events are missing.
  change(1000, program, tracer);
  feed(Events(0).add_record(1100, EventKind::lost, Loss{.words = 1, .from_ns = 1050, .to_ns = 1100},
                            static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream));
  change(1200, tracer, program, LeftState::sleeping);
  EXPECT_EQ(own.figures().waits, 0U);
}

TEST_F(OwnShareTest, TheLineIsShownIfItIsNotable) {
  const auto line = [](const OwnFigures& figures) {
    TextBuffer out;
    add_own_share(out, figures, 30'000'000'000);
    return std::string(out.text());
  };
  EXPECT_EQ(line({}), "");
  EXPECT_EQ(line({.cpu_ns = 400'000'000, .waits = 10, .waited_ns = 900'000, .longest_wait_ns = 90'000}), "");
  EXPECT_EQ(line({.cpu_ns = 630'000'000}), "rtev-bpf itself: 2.1% of a CPU\n");
  EXPECT_EQ(line({.cpu_ns = 150'000'000, .waits = 2, .waited_ns = 2'000'000, .longest_wait_ns = 1'500'000}),
            "rtev-bpf itself: 0.5% of a CPU; traced threads waited for it 2 times for 2.00ms, the longest 1.50ms\n");
}

}  // namespace
}  // namespace rtev::test
