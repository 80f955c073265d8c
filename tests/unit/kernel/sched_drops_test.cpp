// SPDX-License-Identifier: MIT
#include "kernel/sched_drops.hpp"

#include <gmock/gmock.h>

#include <array>

namespace rtev::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace rtev::kernel
