// SPDX-License-Identifier: MIT
#include "stream/selection.hpp"

#include <gmock/gmock.h>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using ::testing::ElementsAre;

/// Notes the times of what it gets, and the last switch.
class Times final : public Sink {
 public:
  void header(const RunHeader&) override {}
  void consume(const Batch& batch, const Registry&) override {
    for (const Event& event : batch.events()) {
      times.push_back(event.time);
      if (event.kind == EventKind::sched_switch) change = batch.payload_as<SchedSwitch>(event).value();
    }
  }
  void flush() override {}
  void summary(const RunSummary& summary, const Registry&) override { last = summary; }

  std::vector<std::uint64_t> times;
  RunSummary last;
  SchedSwitch change{};
};

class SelectionTest : public ::testing::Test {
 protected:
  SelectionTest() {
    ProcessInfo facts = World::default_facts();
    facts.pid = 77;
    facts.comm = "batch-1";
    other = world.registry.add_process(std::move(facts));
    other_slot = world.add_ring(other);
  }

  std::vector<std::uint64_t> select(SelectionOptions options) {
    const bool all_the_time = !options.duration;
    Selection selection(times, std::move(options));
    selection.header({.start_ns = 100});
    const auto feed = [&](const Events& events) { selection.consume(events.batch(), world.registry); };
    feed(Events(0)
             .add_record(110, EventKind::process, ProcessRecord{world.process, 0, 0})
             .add_record(111, EventKind::process, ProcessRecord{other, 0, 0}));
    feed(Events(world.slot).add(120, EventKind::begin, phase_minor));
    feed(Events(other_slot).add(121, EventKind::begin, phase_minor));
    const Thread ours = make_thread(4242, 4242, "server", true), theirs = make_thread(77, 78, "batch-1", true),
                 idle = make_thread(0, 0, "swapper", false);
    feed(Events(0)
             .add_record(130, EventKind::sched_switch, SchedSwitch{0, LeftState::sleeping, ours, idle})
             .add_record(131, EventKind::sched_switch, SchedSwitch{0, LeftState::sleeping, idle, theirs})
             .add_record(132, EventKind::wakeup, Wakeup{0, ours, theirs})
             .add_record(133, EventKind::wakeup, Wakeup{0, theirs, ours})
             .add_record(150, EventKind::lost, Loss{1, 150, 160}, static_cast<std::uint16_t>(LossReason::dropped),
                         first_sched_stream));
    if (all_the_time) {
      EXPECT_EQ(std::erase(times.times, 150U), 1U) << "what the kernel dropped may have been of anybody";
    }
    selection.summary({.end_ns = 200}, world.registry);
    return std::exchange(times.times, {});
  }

  World world;
  ProcessIndex other = 0;
  std::uint32_t other_slot = 0;
  Times times;
};

TEST_F(SelectionTest, EverythingByDefault) {
  EXPECT_THAT(select({}), ElementsAre(110, 111, 120, 121, 130, 131, 132, 133));
  EXPECT_EQ(times.last.end_ns, 200u);
}

TEST_F(SelectionTest, ByPid) {
  EXPECT_THAT(select({.pids = {4242}}), ElementsAre(110, 120, 130, 132));
}

TEST_F(SelectionTest, AnalysesSeeWhoHadTheCpus) {
  EXPECT_THAT(select({.pids = {4242}, .all_scheduling = true}), ElementsAre(110, 120, 130, 131, 132, 133));
  EXPECT_EQ(times.last.events[static_cast<std::size_t>(EventKind::sched_switch)], 2U);
  EXPECT_EQ(times.last.events[static_cast<std::size_t>(EventKind::begin)], 1U);
}

TEST_F(SelectionTest, WhereAllThreadsWereRecordedAllAreSelected) {
  const Thread hog = make_thread(99, 99, "hog", false), idle = make_thread(0, 0, "swapper", false),
               ours = make_thread(4242, 4242, "server", true), theirs = make_thread(77, 78, "batch-1", true);
  Selection selection(times, {.pids = {4242}});
  selection.header({.start_ns = 100});
  const auto switches = [&](std::uint64_t time, const Thread& prev, const Thread& next) {
    selection.consume(
        Events(0).add_record(time, EventKind::sched_switch, SchedSwitch{0, LeftState::preempted, prev, next}).batch(),
        world.registry);
  };
  selection.consume(Events(0).add_record(110, EventKind::process, ProcessRecord{world.process, 0, 0}).batch(),
                    world.registry);
  switches(120, idle, theirs);
  switches(130, hog, idle);
  switches(140, idle, theirs);
  switches(150, theirs, ours);
  EXPECT_THAT(times.times, ElementsAre(110, 130, 140, 150));
}

TEST_F(SelectionTest, ThreadsOfOthersAreNotFollowed) {
  const Thread ours = make_thread(4242, 4242, "server", true), theirs = make_thread(77, 78, "batch-1", true);
  const auto tracked = [&](SelectionOptions options) {
    Selection selection(times, std::move(options));
    selection.header({.start_ns = 100});
    selection.consume(Events(0)
                          .add_record(110, EventKind::process, ProcessRecord{world.process, 0, 0})
                          .add_record(120, EventKind::sched_switch, SchedSwitch{0, LeftState::preempted, ours, theirs})
                          .batch(),
                      world.registry);
    return std::pair(times.change.prev.tracked, times.change.next.tracked);
  };
  EXPECT_EQ(tracked({.pids = {4242}}), std::pair(true, false));
  EXPECT_EQ(times.change.next.pid, 77);
  EXPECT_EQ(tracked({.pids = {4242}, .all_scheduling = true}), std::pair(true, true));
  EXPECT_EQ(tracked({}), std::pair(true, true));
}

TEST_F(SelectionTest, SummariesCountWhatWasSelected) {
  select({.pids = {4242}});
  EXPECT_EQ(times.last.events[static_cast<std::size_t>(EventKind::sched_switch)], 1U);
  EXPECT_EQ(times.last.events[static_cast<std::size_t>(EventKind::process)], 1U);
  select({});
  EXPECT_EQ(times.last.events[static_cast<std::size_t>(EventKind::sched_switch)], 0U) << "as it was";
}

TEST_F(SelectionTest, ByName) {
  EXPECT_THAT(select({.name_globs = {"batch-*"}}), ElementsAre(111, 121, 131, 133));
  EXPECT_THAT(select({.name_globs = {"batch"}}), ElementsAre());
}

TEST_F(SelectionTest, FromTheBeginningForSoLong) {
  EXPECT_THAT(select({.duration = std::chrono::nanoseconds(20)}), ElementsAre(110, 111, 120));
  EXPECT_EQ(times.last.end_ns, 120u);
}

}  // namespace
}  // namespace rtev::test
