// SPDX-License-Identifier: MIT
#include "session/live/ring_stager.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::Events;

class RingStagerTest : public testing::Test {
 protected:
  RingStagerTest() {
    info().family_source = FamilySource::assumed;
    info().family = Family::before_5_3;
    stager_.add(world_.slot);
  }
  ProcessInfo& info() { return world_.registry.process(world_.process); }
  std::size_t staged() {
    std::size_t events = 0;
    timeline_.deliver(std::numeric_limits<std::uint64_t>::max(),
                      [&](const Batch& batch) { events += batch.events().size(); });
    return events;
  }

  test::World world_;
  Timeline timeline_{[] { return std::uint64_t{1'000}; }};
  std::vector<std::pair<std::uint64_t, ProcessIndex>> stops_;
  RingStager stager_{world_.registry, timeline_,
                     [this](std::uint64_t time_ns, ProcessIndex process) { stops_.emplace_back(time_ns, process); }};
};

/// A counter that only OCaml 5.3 and later have.
Events only_since_5_3(std::uint32_t slot) {
  return Events(slot).add(10, EventKind::counter, 20, 1);
}

TEST_F(RingStagerTest, FindsTheFamilyInTheEvents) {
  stager_.stage(Events(world_.slot).add(5, EventKind::begin, 10).batch());
  EXPECT_EQ(info().family_source, FamilySource::assumed) << "all versions have this phase";
  stager_.stage(only_since_5_3(world_.slot).batch());
  EXPECT_EQ(info().family_source, FamilySource::ring);
  EXPECT_EQ(info().family, Family::since_5_3);
  EXPECT_EQ(staged(), 2u);
}

TEST_F(RingStagerTest, KeepsAFamilyThatIsKnown) {
  info().family_source = FamilySource::symbols;
  stager_.stage(only_since_5_3(world_.slot).batch());
  EXPECT_EQ(info().family, Family::before_5_3);
  EXPECT_EQ(info().family_source, FamilySource::symbols);
}

TEST_F(RingStagerTest, StagesNoEventsOfUnusedKinds) {
  RingStager stager(world_.registry, timeline_, [](std::uint64_t, ProcessIndex) {}, kinds_of({EventKind::counter}));
  stager.stage(Events(world_.slot).add(5, EventKind::begin, 10).add(6, EventKind::counter, 1, 1).batch());
  stager.stage(Events(world_.slot).add(7, EventKind::counter, 1, 1).batch());
  EXPECT_EQ(staged(), 1u);
}

TEST_F(RingStagerTest, DoesNotGuessTheFamilyOfOtherRings) {
  const std::uint32_t producers = world_.registry.add_ring(
      {.process = world_.process, .domains = 1, .producer = Producer{.name = "librtev", .family = Family::before_5_3}});
  info().family_source = FamilySource::assumed;
  stager_.add(producers);
  stager_.stage(only_since_5_3(producers).batch());
  EXPECT_EQ(info().family_source, FamilySource::assumed) << "a producer says its family";
  stager_.forget(world_.slot);
  stager_.stage(only_since_5_3(world_.slot).batch());
  EXPECT_EQ(info().family_source, FamilySource::assumed) << "forgotten";
}

TEST_F(RingStagerTest, ReportsOnceThatTheRuntimeStoppedTheRing) {
  for (const auto& [before, stops] :
       {std::pair{RingState::active, 1u}, {RingState::paused, 1u}, {RingState::stopped, 0u}, {RingState::shared, 0u}}) {
    info().ring = before;
    stops_.clear();
    for (const std::uint64_t time : {7, 8}) stager_.stage(Events(world_.slot).add(time, Lifecycle::ring_stop).batch());
    const std::vector<std::pair<std::uint64_t, ProcessIndex>> expected(stops, {7, world_.process});
    EXPECT_EQ(stops_, expected) << to_string(before);
    EXPECT_EQ(info().ring, before == RingState::shared ? RingState::shared : RingState::stopped);
  }
}

}  // namespace
}  // namespace rtev
