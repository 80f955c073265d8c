// SPDX-License-Identifier: MIT
// The frames of a stream: figures of each interval, and the details of a process.
#include "top/frame_sink.hpp"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "support/terminal_check.hpp"
#include "top/frame_text.hpp"
#include "unit/top/a_server.hpp"

namespace rtev::top {
namespace {

using test::AServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t second = AServer::second, ms = AServer::ms;

class FrameSinkTest : public testing::Test {
 protected:
  std::vector<Frame> frames;
  FrameSink sink{{.details = true}, [this](Frame&& frame) { frames.push_back(std::move(frame)); }};
};

TEST_F(FrameSinkTest, EachIntervalHasItsFigures) {
  const AServer server;
  server.begin(sink);
  for (std::uint64_t i = 1; i < 30; ++i) server.serve(sink, i, i == 15 ? 40 * ms : ms / 2);
  sink.advance(AServer::begin_ns + 3 * second, server.world->registry);
  ASSERT_THAT(frames, SizeIs(3));
  for (const Frame& frame : frames) {
    ASSERT_THAT(frame.processes, SizeIs(1));
    EXPECT_EQ(frame.interval_ns, second);
    EXPECT_EQ(frame.realtime_ns % second, 0u);
  }
  const ProcessFigures &first = frames[0].processes[0], &middle = frames[1].processes[0];
  EXPECT_EQ(first.pauses, 9u);
  EXPECT_EQ(first.worst_ns, ms / 2);
  EXPECT_DOUBLE_EQ(first.gc_share, 9 * 0.0005);
  EXPECT_EQ(first.allocated_bytes, 9 * 100'000u);
  EXPECT_EQ(first.heap_bytes, 1'450'000 * 8u);
  EXPECT_EQ(middle.pauses, 10u);
  EXPECT_EQ(middle.worst_ns, 40 * ms);
  EXPECT_THAT(frames[1].worst, HasSubstr("40.0ms in server/4242, domain 0: "));
  ASSERT_TRUE(middle.growth.has_value());
  EXPECT_DOUBLE_EQ(*middle.growth, 500'000 * 8);
  EXPECT_DOUBLE_EQ(*middle.cpu_share, 1);
}

TEST_F(FrameSinkTest, AWaitCountsInEachInterval) {
  const AServer server;
  server.begin(sink);
  const auto change = [&](std::uint64_t at, const SchedSwitch& sched) {
    server.feed(sink, test::Events(0).add_record(AServer::begin_ns + at, EventKind::sched_switch, sched, 0,
                                                 first_sched_stream));
  };
  const Thread us = test::a_thread(4242, 4242, 0), other = test::make_thread(1, 1, "other", false);
  change(second / 2, {.cpu = 0, .state = LeftState::preempted, .prev = us, .next = other});
  change(9 * second / 4, {.cpu = 0, .state = LeftState::sleeping, .prev = other, .next = us});
  sink.advance(AServer::begin_ns + 3 * second, server.world->registry);
  ASSERT_THAT(frames, SizeIs(3));
  const std::array waited{0.5, 1.0, 0.25}, ran{0.5, 0.0, 0.75};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_DOUBLE_EQ(frames[i].processes.at(0).wait_share.value(), waited[i]) << i;
    EXPECT_DOUBLE_EQ(frames[i].processes.at(0).cpu_share.value(), ran[i]) << i;
  }
  EXPECT_EQ(frames[1].details.at(0).domains.at(0).state, "waits for a CPU behind \"other\" (pid 1)");
}

TEST_F(FrameSinkTest, FiguresOfAllIntervalsAddUp) {
  const AServer server;
  server.begin(sink);
  for (std::uint64_t i = 1; i < 50; ++i) server.serve(sink, i);
  sink.summary({.end_ns = AServer::begin_ns + 5 * second}, server.world->registry);
  std::uint64_t pauses = 0, events = 0, allocated = 0;
  for (const Frame& frame : frames) {
    for (const ProcessFigures& process : frame.processes) {
      pauses += process.pauses;
      events += process.events;
      allocated += process.allocated_bytes;
    }
  }
  EXPECT_EQ(pauses, 49u);
  EXPECT_EQ(events, 49 * 8 + 1u);
  EXPECT_EQ(allocated, 49 * 100'000u);
}

TEST_F(FrameSinkTest, APauseThatGoesOnCountsAsFarAsItGot) {
  const AServer server;
  server.begin(sink);
  server.feed(
      sink, test::Events(server.world->slot).add(AServer::begin_ns + second / 2, EventKind::begin, test::phase_major));
  sink.advance(AServer::begin_ns + 2 * second, server.world->registry);
  ASSERT_THAT(frames, SizeIs(2));
  EXPECT_EQ(frames[0].processes[0].worst_ns, second / 2);
  EXPECT_EQ(frames[1].processes[0].worst_ns, 3 * second / 2);
  EXPECT_EQ(frames[1].processes[0].pauses, 0u) << "none has ended";
  ASSERT_THAT(frames[1].details, SizeIs(1));
  ASSERT_THAT(frames[1].details[0].domains, SizeIs(1));
  EXPECT_EQ(frames[1].details[0].domains[0].state, "in a pause for 1.50s, running");
}

TEST_F(FrameSinkTest, DetailsAreOfTheWholeRun) {
  const AServer server;
  server.begin(sink);
  for (std::uint64_t i = 1; i < 30; ++i) server.serve(sink, i, i == 15 ? 40 * ms : ms / 2);
  sink.advance(AServer::begin_ns + 3 * second, server.world->registry);
  const ProcessDetails details = sink.details_of(server.world->process);
  ASSERT_THAT(details.domains, SizeIs(1));
  EXPECT_EQ(details.domains[0].state, "running");
  EXPECT_EQ(details.domains[0].pauses, 29u);
  EXPECT_EQ(details.domains[0].worst_ns, 40 * ms);
  ASSERT_THAT(details.causes, Not(IsEmpty()));
  EXPECT_THAT(details.causes[0], HasSubstr("major_slice"));
  EXPECT_THAT(details.worst, HasSubstr("40.0ms"));
  ASSERT_THAT(details.spans, SizeIs(1));
  EXPECT_EQ(details.spans[0].name, "request");
  EXPECT_EQ(details.spans[0].count, 29u);
}

TEST_F(FrameSinkTest, AProcessThatEndedIsListedOnce) {
  const AServer server;
  server.begin(sink);
  server.serve(sink, 1);
  sink.advance(AServer::begin_ns + second, server.world->registry);
  server.feed(sink, test::Events(0).add_record(AServer::begin_ns + second, EventKind::process,
                                               ProcessRecord{server.world->process, 0, 0},
                                               static_cast<std::uint16_t>(ProcessAction::exit)));
  sink.advance(AServer::begin_ns + 3 * second, server.world->registry);
  ASSERT_THAT(frames, SizeIs(3));
  ASSERT_THAT(frames[0].processes, SizeIs(1));
  EXPECT_FALSE(frames[0].processes[0].ended);
  ASSERT_THAT(frames[1].processes, SizeIs(1));
  EXPECT_TRUE(frames[1].processes[0].ended);
  EXPECT_THAT(frame_text(frames[1], nullptr, 0), HasSubstr("server (ended)"));
  EXPECT_THAT(frames[2].processes, IsEmpty());
  EXPECT_THAT(sink.details_of(server.world->process).domains, IsEmpty());
}

TEST_F(FrameSinkTest, ALongGapHasNoEmptyFrames) {
  const AServer server;
  server.begin(sink);
  server.serve(sink, 1);
  server.feed(sink, test::Events(server.world->slot).add(std::uint64_t{1} << 62, EventKind::begin, test::phase_major));
  sink.summary({.end_ns = std::uint64_t{1} << 62}, server.world->registry);
  EXPECT_LE(frames.size(), 3u);
}

TEST_F(FrameSinkTest, LossesAreShown) {
  const AServer server;
  server.begin(sink);
  server.feed(sink,
              test::Events(server.world->slot)
                  .add_record(AServer::begin_ns + ms, EventKind::lost,
                              Loss{.words = 1234, .from_ns = AServer::begin_ns, .to_ns = AServer::begin_ns + ms}, 0));
  sink.advance(AServer::begin_ns + second, server.world->registry);
  ASSERT_THAT(frames, SizeIs(1));
  EXPECT_EQ(frames[0].lost_words, 1234u);
  EXPECT_THAT(totals_text(frames[0]), HasSubstr("1,234 words lost!"));
  EXPECT_THAT(frame_text(frames[0], nullptr, 0), HasSubstr("1,234!"));
}

TEST_F(FrameSinkTest, TextFitsATerminal) {
  const AServer server;
  server.begin(sink);
  server.serve(sink, 1);
  sink.advance(AServer::begin_ns + second, server.world->registry);
  const Column* const sorted_by = column_named("ev");
  std::string text = frame_text(frames.at(0), sorted_by, 80);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("NAME"), HasSubstr("EV/s"), testing::Not(HasSubstr("LIVE%"))));
  const std::size_t table = text.rfind("    PID");
  for (std::size_t begin = table; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 80u) << text;
  for (const Column& column : all_columns())
    EXPECT_THAT(frame_text(frames[0], sorted_by, 0), HasSubstr(std::string(column.title)));
}

TEST_F(FrameSinkTest, HostileNamesControlNoTerminalAndAreValidJson) {
  for (const std::string& name : test::hostile_strings()) {
    const AServer server(name);
    frames.clear();
    FrameSink hostile({.details = true}, [this](Frame&& frame) { frames.push_back(std::move(frame)); });
    server.begin(hostile);
    server.serve(hostile, 1);
    hostile.advance(AServer::begin_ns + second, server.world->registry);
    ASSERT_THAT(frames, SizeIs(1));
    EXPECT_EQ(test::terminal_danger(frame_text(frames[0], column_named("worst"), 0)), "");
    EXPECT_TRUE(nlohmann::json::accept(frame_json(frames[0], hostile.run(), nullptr)));
  }
}

TEST(FrameJson, HasTheTimeOfItsInterval) {
  std::vector<std::string> lines;
  const AServer server;
  FrameSink sink({.interval_ns = 2 * second},
                 [&](const Frame& frame) { lines.push_back(frame_json(frame, sink.run(), column_named("worst"))); });
  server.begin(sink);
  server.serve(sink, 1);
  sink.advance(AServer::begin_ns + 4 * second, server.world->registry);
  ASSERT_THAT(lines, SizeIs(2));
  const auto json = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(json["type"], "top");
  EXPECT_EQ(json["start_ns"], AServer::begin_ns + 2 * second);
  EXPECT_EQ(json["end_ns"], AServer::begin_ns + 4 * second);
  EXPECT_EQ(json["time"], "2025-11-21T02:58:34.000000000Z");
  EXPECT_EQ(json["processes"][0]["comm"], "server");
}

}  // namespace
}  // namespace rtev::top
