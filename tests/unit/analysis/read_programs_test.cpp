// SPDX-License-Identifier: MIT
#include "analysis/read_programs.hpp"

#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

class ReadProgramsTest : public testing::Test {
 protected:
  ReadProgramsTest() {
    ProcessInfo& info = world.registry.process(world.process);
    info.ring = RingState::none;
    info.domains = 0;
  }
  void add(std::uint64_t time, ProcessAction action) {
    const Events events = Events(0).add_record(time, EventKind::process, ProcessRecord{world.process, 0, 0},
                                               static_cast<std::uint16_t>(action));
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) count.add(event, batch, world.registry);
  }

  World world;
  ReadProgramCount count;
};

TEST_F(ReadProgramsTest, OneThatRanBeforeHasItsEventsOff) {
  add(1000, ProcessAction::found);
  EXPECT_EQ(count.programs(world.registry).off, 1u);
}

TEST_F(ReadProgramsTest, OneThatHasJustBegunMayMakeItsRing) {
  add(1000, ProcessAction::fork);
  EXPECT_EQ(count.programs(world.registry).off, 0u);
  add(1000 + max_start_ns, ProcessAction::fork);
  EXPECT_EQ(count.programs(world.registry).off, 1u);
}

}  // namespace
}  // namespace rtev::test
