// SPDX-License-Identifier: MIT
// Tracks of fibers in a Perfetto trace, read back by a decoder.
#include <gmock/gmock.h>

#include "unit/analysis/tasks/eio_events.hpp"
#include "unit/formats/perfetto/perfetto_world.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::IsEmpty, testing::SizeIs;

class PerfettoTasks : public PerfettoTest {
 protected:
  TaskScript script() { return TaskScript(world_); }
  void feed(const TaskScript& script) { sink_.consume(script.batch(), world_.registry); }
};

TEST_F(PerfettoTasks, AreAGroupOfTheirProcess) {
  feed(script().at(2000).create_context(9, 3).name(9, "main").create_fiber(1, 9).name(1, "server").at(2100).fiber(1));
  feed(script().at(2200).create_fiber(2, 9).fiber(2).at(2300).suspend("sleep").fiber(1).at(2400).suspend(""));
  feed(script().at(2500).fiber(2).error(9, "Failure(\"no\")").at(2600).exit_fiber(2));
  const PerfettoTrace trace = finish();

  const PerfettoTrack& group = trace.track("tasks");
  EXPECT_EQ(group.pid, pid);
  EXPECT_TRUE(trace.tracks.at(group.parent).is_process);
  const PerfettoTrack &server = trace.track("fiber 1 \"server\""), &second = trace.track("fiber 2 of \"main\"");
  for (const PerfettoTrack* const track : {&server, &second}) {
    EXPECT_EQ(track->pid, pid);
    EXPECT_EQ(&trace.tracks.at(track->parent), &group);
  }
  EXPECT_LT(server.rank, second.rank);
  EXPECT_THAT(texts(server.slices),
              ElementsAre("2000 runnable task context=switch 9 \"main\" -2100", "2100 domain 0 task -2200",
                          "2200 runnable task -2300", "2300 domain 0 task -2400", "2400 runnable task -100000"));
  EXPECT_THAT(texts(second.slices),
              ElementsAre("2200 runnable task context=switch 9 \"main\" creator=1 -2200", "2200 domain 0 task -2300",
                          "2300 sleep task -2500", "2500 domain 0 task -2600"));
  EXPECT_THAT(texts(second.instants), ElementsAre("2600 failed task text=Failure(\"no\")"));
  ASSERT_THAT(server.slices[1].flows_out, SizeIs(1));
  EXPECT_EQ(second.slices[1].flows_in, server.slices[1].flows_out);
  EXPECT_THAT(second.slices[0].flows_in, IsEmpty());
}

TEST_F(PerfettoTasks, HostileNamesAreText) {
  for (const std::string& name : hostile_strings())
    feed(script()
             .at(2000)
             .create_context(9, 3)
             .name(9, name)
             .create_fiber(1, 9)
             .fiber(1)
             .name(1, name)
             .suspend(name)
             .fiber(1)
             .error(9, name)
             .exit_fiber(1));
  finish();
}

TEST_F(PerfettoTasks, AFloodOfFibersIsATraceStill) {
  for (std::int64_t id = 0; id < 1100; ++id)
    feed(script().at(2000 + static_cast<std::uint64_t>(id)).fiber(0).create_fiber(id, 0).fiber(id).suspend("read"));
  EXPECT_THAT(finish().named("fiber 990"), SizeIs(1));
}

}  // namespace
}  // namespace rtev::test
