// SPDX-License-Identifier: MIT
#include "analysis/latency/domain_time.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::a_thread, test::competitor, test::enters, test::leaves, test::nobody, test::wakes;

constexpr std::int32_t pid = 4242;

class DomainTimes : public testing::Test {
 protected:
  void add(std::uint64_t at, const SchedSwitch& change) {
    test::Events events{0};
    events.add_record(at, EventKind::sched_switch, change, 0, first_sched_stream);
    feed(events);
  }
  void add(std::uint64_t at, const Wakeup& wakeup) {
    test::Events events{0};
    events.add_record(at, EventKind::wakeup, wakeup, 0, first_sched_stream);
    feed(events);
  }
  void feed(const test::Events& events) {
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) time.add(event, batch, world.registry);
  }

  test::World world;
  DomainTime time;
};

TEST_F(DomainTimes, AreThoseOfTheThreadThatRunsTheDomain) {
  const Thread main_thread = a_thread(pid, pid, 0), worker = a_thread(pid, pid + 1, 1);
  add(10, enters(main_thread, 0));
  add(20, leaves(main_thread, LeftState::sleeping, 0));
  add(30, enters(worker, 1));
  add(35, leaves(worker, LeftState::preempted, 1, competitor()));
  add(40, enters(worker, 1, competitor()));
  const auto first = time.start(pid, 0, 50), second = time.start(pid, 1, 50);
  add(60, leaves(worker, LeftState::preempted, 1, competitor()));
  add(75, enters(worker, 1, competitor()));
  EXPECT_EQ(time.running(), 2U);
  EXPECT_EQ(time.stop(second, 80), (TimeSplit{.on_cpu = 15, .runnable = 15}));
  EXPECT_EQ(time.stop(first, 90), (TimeSplit{.sleeping = 40}));
  EXPECT_EQ(time.running(), 0U);
  EXPECT_EQ(time.stop(first, 100), TimeSplit{}) << "it was stopped before";
}

TEST_F(DomainTimes, AreUnknownBeyondALimit) {
  add(10, enters(a_thread(pid, pid, 0), 0));
  const auto first = time.start(pid, 0, 20);
  for (std::size_t running = 1; running < DomainTime::max_running; ++running) time.start(pid, 0, 20);
  const auto beyond = time.start(pid, 0, 20), of_another = time.start(pid + 1, 0, 20);
  EXPECT_EQ(time.stop(beyond, 50), (TimeSplit{.unknown = 30}));
  EXPECT_EQ(time.stop(first, 50), (TimeSplit{.on_cpu = 30}));
  EXPECT_EQ(time.running(), DomainTime::max_running);
  EXPECT_NE(of_another.number, 0U);
}

TEST_F(DomainTimes, ArePutTogetherWhereThreadsTakeTurns) {
  Thread backup = a_thread(pid, pid + 2, 0);
  backup.role = ThreadRole::backup;
  const Thread mutator = a_thread(pid, pid, 0);
  add(5, enters(mutator, 1));
  add(6, leaves(mutator, LeftState::sleeping, 1));
  add(7, enters(backup, 0));
  add(8, leaves(backup, LeftState::sleeping, 0));
  add(10, enters(mutator, 1));
  const auto meter = time.start(pid, 0, 20);
  add(30, leaves(mutator, LeftState::sleeping, 1));
  // From here on the backup thread is the one that can write.
  add(45, wakes(backup, competitor()));
  add(50, enters(backup, 0));
  add(55, leaves(backup, LeftState::preempted, 0, competitor()));
  add(60, enters(backup, 0, competitor()));
  EXPECT_EQ(time.stop(meter, 70), (TimeSplit{.on_cpu = 10 + 5 + 10, .runnable = 5, .sleeping = 20}));
}

TEST_F(DomainTimes, AreUnknownWithoutSchedulerEvents) {
  const auto meter = time.start(pid, 3, 100);
  EXPECT_FALSE(time.switches_seen());
  EXPECT_EQ(time.stop(meter, 150), (TimeSplit{.unknown = 50}));
}

TEST_F(DomainTimes, AreUnknownWhereSchedulerEventsWereDropped) {
  const Thread mutator = a_thread(pid, pid, 0);
  add(10, enters(mutator, 1));
  const auto before = time.start(pid, 0, 20);
  const auto across = time.start(pid, 0, 25);
  EXPECT_EQ(time.stop(before, 30), (TimeSplit{.on_cpu = 10}));
  feed(test::Events{0}.add_record(50, EventKind::lost, Loss{2, 50, 60}, static_cast<std::uint16_t>(LossReason::dropped),
                                  first_sched_stream));
  const auto inside = time.start(pid, 0, 52);
  add(55, leaves(mutator, LeftState::sleeping, 1));
  add(57, enters(mutator, 1));
  EXPECT_EQ(time.stop(inside, 58), (TimeSplit{.unknown = 6}));
  add(70, leaves(mutator, LeftState::preempted, 1, competitor()));
  add(80, enters(mutator, 1, competitor()));
  EXPECT_EQ(time.stop(across, 90), (TimeSplit{.on_cpu = 25 + 10, .runnable = 10, .unknown = 20}));
}

TEST_F(DomainTimes, AreUnknownFromTheEndOfTheProcessOn) {
  const Thread mutator = a_thread(pid, pid, 0);
  add(10, enters(mutator, 1));
  const auto meter = time.start(pid, 0, 20);
  test::Events exit{0};
  exit.add_record(50, EventKind::process, ProcessRecord{world.process, 0, 0},
                  static_cast<std::uint16_t>(ProcessAction::exit));
  feed(exit);
  const TimeSplit split = time.stop(meter, 60);
  EXPECT_EQ(split.total(), 40U);
  EXPECT_GE(split.unknown, 10U);
}

TEST_F(DomainTimes, AddUpToTheDurationWhateverHappens) {
  std::mt19937 random{11};
  const auto pick = [&](std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random);
  };
  struct Open {
    DomainTime::Meter meter;
    std::uint64_t begin;
  };
  std::vector<Open> open;
  std::uint64_t now = 1000;
  for (int step = 0; step < 20'000; ++step) {
    now += pick(30);
    const std::uint64_t when = pick(20) == 0 ? now - pick(200) : now;
    Thread thread = a_thread(pid, static_cast<std::int32_t>(pid + pick(5)), static_cast<std::int32_t>(pick(4)) - 1);
    thread.role = static_cast<ThreadRole>(pick(4));
    const auto cpu = static_cast<std::uint32_t>(pick(3));
    switch (pick(6)) {
      case 0:
        add(when, wakes(thread, competitor(), cpu));
        break;
      case 1:
        add(when, leaves(thread, static_cast<LeftState>(pick(8)), cpu));
        break;
      case 2:
        add(when, enters(thread, cpu));
        break;
      case 3:
        open.push_back({time.start(pid, static_cast<std::uint16_t>(pick(4)), now), now});
        break;
      default:
        if (open.empty()) break;
        const Open ended = open[pick(open.size())];
        std::erase_if(open, [&](const Open& other) { return other.meter.number == ended.meter.number; });
        EXPECT_EQ(time.stop(ended.meter, now).total(), now - ended.begin);
    }
  }
  EXPECT_EQ(time.running(), open.size());
}

}  // namespace
}  // namespace rtev
