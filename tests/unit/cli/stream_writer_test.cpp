// SPDX-License-Identifier: MIT
// What the file of a stream, and the last line, say is missing of it.
#include "cli/stream_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files.hpp"
#include "support/temp_dir.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using ::testing::HasSubstr;

TEST(StreamWriter, CountsGapsInTheSchedulerEventsOfThreads) {
  const TempDir dir;
  const World world;
  const Thread thread = a_thread(4242, 4242);
  cli::OutputOptions options;
  options.path = dir / "a.json";
  options.format = Format::jsonl;
  auto writer = cli::StreamWriter::open(options, Format::text);
  ASSERT_TRUE(writer) << writer.error().message();
  Sink& sink = writer->sink();
  sink.header({.start_ns = 1});
  Events events(0);
  events.add_record(10, EventKind::sched_switch, enters(thread))
      .add_record(20, EventKind::sched_switch, leaves(thread, LeftState::sleeping))
      .add_record(30, EventKind::sched_switch, leaves(thread, LeftState::sleeping));  // but it was not there
  sink.consume(events.batch(), world.registry);
  const RunSummary summary{.start_ns = 1, .end_ns = 100};
  sink.summary(summary, world.registry);
  sink.flush();
  EXPECT_THAT(read_file(options.path), HasSubstr("\"drops\":{\"scheduler_gaps\":1}"));
  ::testing::internal::CaptureStderr();
  writer->print_summary(summary, world.registry, false, {});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("; missing: 1 gap in the scheduler events of a thread\n"));
}

}  // namespace
}  // namespace rtev::test
