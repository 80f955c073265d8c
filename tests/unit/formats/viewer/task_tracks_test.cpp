// SPDX-License-Identifier: MIT
// Tracks of fibers: their slices, arrows, names and ends, and their number.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "formats/viewer/track_builder.hpp"
#include "unit/analysis/tasks/eio_events.hpp"
#include "unit/formats/viewer/trace_log.hpp"

namespace rtev::test {
namespace {

using testing::Contains, testing::ElementsAre, testing::IsEmpty, testing::Not, testing::SizeIs;

class TaskTracksTest : public testing::Test {
 protected:
  TaskScript script() { return TaskScript(world); }
  void feed(const TaskScript& script) { builder.consume(script.batch(), world.registry); }
  /// Lines about tracks of tasks.
  std::vector<std::string> tasks() const {
    std::vector<std::string> found;
    for (const std::string& line : log.lines)
      if (line.contains("@fiber")) found.push_back(line);
    return found;
  }

  World world;
  TraceLog log;
  TrackBuilder builder{log};
};

TEST_F(TaskTracksTest, ShowWhatAFiberDidWhere) {
  feed(script().at(10).create_context(9, 3).create_fiber(1, 9).name(1, "main").at(20).on(2).fiber(1));
  feed(script().on(2).at(30).suspend("sleep").at(40).on(2).fiber(1).at(50).yield().at(60).fiber(1));
  builder.finish(70, world.registry);
  EXPECT_THAT(tasks(), ElementsAre("10-20 runnable @fiber 1 \"main\" in switch 9", "20-30 domain 2 @fiber 1 \"main\"",
                                   "30-40 sleep @fiber 1 \"main\"", "40-50 domain 2 @fiber 1 \"main\"",
                                   "50-60 runnable @fiber 1 \"main\"", "60-70 domain 2 @fiber 1 \"main\""));
}

TEST_F(TaskTracksTest, ArrowsLeaveTheCreatorAndReachTheFirstRun) {
  feed(script().at(10).fiber(1).at(20).create_fiber(2, 0).fiber(2).at(30).suspend("").fiber(1).at(40).suspend(""));
  EXPECT_THAT(tasks(),
              ElementsAre("10-20 domain 0 @fiber 1 ->0", "20-20 runnable @fiber 2 by 1", "20-30 domain 0 @fiber 2 <-0",
                          "20-30 runnable @fiber 1", "30-40 domain 0 @fiber 1"));
}

TEST_F(TaskTracksTest, NoArrowArrivesThatHasNotLeft) {
  feed(script().at(10).fiber(1).create_fiber(2, 0).at(20).loss().at(30).fiber(2).at(40).suspend("read"));
  EXPECT_THAT(tasks(), ElementsAre("30-40 domain 0 @fiber 2 by 1"));
}

TEST_F(TaskTracksTest, WhatIsUncertainSinceALossIsNotShown) {
  feed(script().at(10).fiber(1).at(20).suspend("read").at(30).fiber(2).at(40).loss().at(50).fiber(1).at(60).suspend(
      "x"));
  builder.finish(70, world.registry);
  EXPECT_THAT(tasks(), ElementsAre("10-20 domain 0 @fiber 1", "50-60 domain 0 @fiber 1", "60-70 x @fiber 1"));
}

TEST_F(TaskTracksTest, FailuresAndCancellationsArePoints) {
  feed(script().at(10).create_context(9, 3).create_fiber(1, 9).fiber(1).create_fiber(2, 9).at(20).error(9, "Exit"));
  feed(script().at(21).exit_fiber(1).fiber(2).at(30).exit_fiber(2));
  EXPECT_THAT(tasks(), Contains("21 failed @fiber 1: Exit"));
  EXPECT_THAT(tasks(), Contains("30 cancelled @fiber 2"));
  EXPECT_THAT(log.forgotten, SizeIs(2));
}

TEST_F(TaskTracksTest, ANameMayChange) {
  feed(script().at(10).fiber(1).at(20).suspend("a").name(1, "later").at(30).fiber(1));
  EXPECT_THAT(log.names, Contains("4242/ring fiber 1"));
  EXPECT_THAT(log.names, Contains("4242/ring fiber 1 \"later\""));
}

TEST_F(TaskTracksTest, AreBounded) {
  for (std::int64_t id = 0; id < 1100; ++id)
    feed(script().at(static_cast<std::uint64_t>(id)).fiber(id).suspend("read"));
  EXPECT_THAT(tasks(), SizeIs(TaskTracks::max_tracks));
  builder.finish(2000, world.registry);
  EXPECT_THAT(log.lines, Contains("2000 more tasks than 1000: not all have a track @fiber 0"));
  EXPECT_THAT(log.forgotten, SizeIs(TaskTracks::max_tracks));
}

TEST_F(TaskTracksTest, ProgramsWithoutTasksHaveNone) {
  feed(script().script("10 >minor 20 <minor 30 [1 40 ]1"));
  builder.finish(70, world.registry);
  EXPECT_THAT(tasks(), IsEmpty());
}

}  // namespace
}  // namespace rtev::test
