// SPDX-License-Identifier: MIT
#include "stream/thread_filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::IsEmpty;

/// Remembers the times of the events that it is given.
class TimesSink final : public Sink {
 public:
  void header(const RunHeader&) override {}
  void consume(const Batch& batch, const Registry&) override {
    for (const Event& event : batch.events()) times.push_back(event.time);
  }
  void flush() override {}
  void summary(const RunSummary& summary, const Registry&) override { counts = summary.events; }

  std::vector<std::uint64_t> times;
  std::array<std::uint64_t, event_kind_count> counts{};
};

class ThreadFilterTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> times(const ThreadSelection& selection) {
    ThreadFilter filter(sink_, selection);
    for (const Events& events : {sched_, ring_}) filter.consume(events.batch(), world_.registry);
    filter.summary({}, world_.registry);
    return sink_.times;
  }

  World world_;
  TimesSink sink_;
  Events sched_ = Events(0)
                      .add_record(1, EventKind::sched_switch, enters(a_thread(4242, 4242, 0), 0), 0, first_sched_stream)
                      .add_record(2, EventKind::sched_switch, enters(a_thread(4242, 4243, 1), 1), 0, first_sched_stream)
                      .add_record(3, EventKind::wakeup, wakes(a_thread(4242, 4243, 1)), 0, first_sched_stream)
                      .add_record(4, EventKind::process, ProcessRecord{world_.process, 0, 0},
                                  static_cast<std::uint16_t>(ProcessAction::found));
  Events ring_ = Events(world_.slot).add("10 >minor 11 >minor@1 12 <minor 13 <minor@1 14 ?");
};

TEST_F(ThreadFilterTest, TakesDomains) {
  EXPECT_THAT(times({.domains = {1}}), ElementsAre(2, 3, 4, 11, 13, 14)) << "losses and processes always";
  EXPECT_EQ(sink_.counts[static_cast<std::size_t>(EventKind::begin)], 1u);
}

TEST_F(ThreadFilterTest, TakesThreads) {
  EXPECT_THAT(times({.tids = {4242}}), ElementsAre(1, 4, 10, 12, 14));
}

TEST_F(ThreadFilterTest, TakesWhatIsBoth) {
  EXPECT_THAT(times({.domains = {0}, .tids = {4243}}), ElementsAre(4, 14));
}

}  // namespace
}  // namespace rtev::test
