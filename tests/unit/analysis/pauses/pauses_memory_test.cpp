// SPDX-License-Identifier: MIT
// Many open pauses and large sections: there are fewer details, and every pause is counted.
#include <gmock/gmock.h>

#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

using PausesMemory = PausesTest;

TEST_F(PausesMemory, SectionsNameDomainsUpToABound) {
  StopTheWorld world(3);
  constexpr Family family = Family::since_5_3;
  auto leader = world.lead(1, 0, 100);
  auto second = world.join(1, family, 1, 110);
  auto third = world.lead(2, 0, 100);
  ASSERT_TRUE(leader && second && third);
  EXPECT_FALSE(world.join(1, family, 2, 120));
  EXPECT_EQ(leader->section->unnamed, 1u);
  EXPECT_FALSE(world.lead(3, 0, 100));
  world.forget(1);
  EXPECT_FALSE(world.lead(3, 0, 100)) << "a pause still has the section";
  leader.reset();
  second.reset();
  EXPECT_TRUE(world.lead(3, 0, 100));
}

TEST_F(PausesMemory, SectionsMayOutliveTheirWorld) {
  std::optional<StopTheWorld::Part> part;
  {
    StopTheWorld world(1);
    part = world.lead(1, 0, 100);
  }
  EXPECT_TRUE(part->domain().leads);
}

TEST_F(PausesMemory, PausesBeyondTheBoundHaveFewPhases) {
  for (std::uint16_t domain = 0; domain < 4; ++domain) {
    begin(1000, phase_interrupt, domain);
    for (std::uint16_t phase = 0; phase < 10; ++phase) span(1100, 1200, phase, domain);
    end(2000u + domain, phase_interrupt, domain);
  }
  const std::size_t two = 2 * 2 * PhaseTree::max_nodes * sizeof(PhaseTree::Node);
  const PausesReport report = play({.max_bytes = two});
  EXPECT_EQ(report.counts.pauses, 4u);
  ASSERT_EQ(report.worst.size(), 4u);
  const auto nodes = [&](std::uint16_t domain) {
    const auto of_domain = [&](const PauseDetails* pause) { return pause->domain.domain == domain; };
    return (*std::ranges::find_if(report.worst, of_domain))->phases.nodes().size();
  };
  EXPECT_EQ(nodes(0), 11u);
  EXPECT_EQ(nodes(1), 11u);
  EXPECT_EQ(nodes(2), 4u);
  EXPECT_EQ(nodes(3), 4u);
}

}  // namespace
}  // namespace rtev::test
