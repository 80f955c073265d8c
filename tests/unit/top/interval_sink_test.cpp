// SPDX-License-Identifier: MIT
// The figures of each interval of a stream, and the details of a process.
#include "top/interval_sink.hpp"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "support/terminal_check.hpp"
#include "top/interval_text.hpp"
#include "unit/top/a_server.hpp"

namespace rtev::top {
namespace {

using test::AServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t second = AServer::second, ms = AServer::ms;

class IntervalSinkTest : public testing::Test {
 protected:
  std::vector<Interval> intervals;
  IntervalSink sink{{.details = true}, [this](Interval&& interval) { intervals.push_back(std::move(interval)); }};
};

TEST_F(IntervalSinkTest, EventsOfAProgramThatHasJustBegunAreNotOff) {
  const AServer server;
  server.begin(sink);
  ProcessInfo info;
  info.pid = 9;
  info.comm = "worker";
  const ProcessIndex worker = server.world->registry.add_process(info);
  sink.consume(test::Events(0)
                   .add_record(AServer::begin_ns + second - 2 * ms, EventKind::process,
                               ProcessRecord{.process = worker, .peer = 0, .detail = 0},
                               static_cast<std::uint16_t>(ProcessAction::exec))
                   .batch(),
               server.world->registry);
  sink.advance(AServer::begin_ns + 2 * second, server.world->registry);
  ASSERT_THAT(intervals, SizeIs(2));
  EXPECT_THAT(interval_text(intervals[0], nullptr, 200, false), testing::Not(HasSubstr("(off)")));
  EXPECT_THAT(interval_text(intervals[1], nullptr, 200, false), HasSubstr(" worker (off) "));
}

TEST_F(IntervalSinkTest, EachIntervalHasItsFigures) {
  const AServer server;
  server.begin(sink);
  for (std::uint64_t i = 1; i < 30; ++i) server.serve(sink, i, i == 15 ? 40 * ms : ms / 2);
  sink.advance(AServer::begin_ns + 3 * second, server.world->registry);
  ASSERT_THAT(intervals, SizeIs(3));
  for (const Interval& interval : intervals) {
    ASSERT_THAT(interval.processes, SizeIs(1));
    EXPECT_EQ(interval.length_ns, second);
    EXPECT_EQ(interval.realtime_ns % second, 0u);
  }
  const ProcessFigures &first = intervals[0].processes[0], &middle = intervals[1].processes[0];
  EXPECT_EQ(first.pauses, 9u);
  EXPECT_EQ(first.worst_ns, ms / 2);
  EXPECT_DOUBLE_EQ(first.gc_share, 9 * 0.0005);
  EXPECT_EQ(first.allocated_bytes, 9 * 100'000u);
  EXPECT_EQ(first.heap_bytes, 1'450'000 * 8u);
  EXPECT_EQ(middle.pauses, 10u);
  EXPECT_EQ(middle.worst_ns, 40 * ms);
  EXPECT_THAT(intervals[1].worst, HasSubstr("40.0ms in server/4242, domain 0: "));
  ASSERT_TRUE(middle.growth.has_value());
  EXPECT_DOUBLE_EQ(*middle.growth, 500'000 * 8);
  EXPECT_DOUBLE_EQ(*middle.cpu_share, 1);
}

TEST_F(IntervalSinkTest, ProgramsWithEventsOffAreMarked) {
  Interval interval;
  interval.processes = {{.index = 1, .pid = 7, .comm = "server"},
                        {.index = 2, .pid = 8, .comm = "worker", .events_read = EventsRead::off},
                        {.index = 3, .pid = 9, .comm = "binarytrees5_multicore.exe", .events_read = EventsRead::off}};
  const std::string text = interval_text(interval, nullptr, 0);
  EXPECT_THAT(text, HasSubstr("3 OCaml processes, 2 without events (--enable), 0 events/s"));
  EXPECT_THAT(text, HasSubstr(" worker (off) "));
  EXPECT_THAT(text, testing::ContainsRegex(" bina.*exe \\(off\\) ")) << "both ends of a long name";
}

TEST_F(IntervalSinkTest, WhatWasNotRecordedIsUnknown) {
  Interval interval{.is_truncated = true};
  interval.processes = {{.index = 1, .pid = 7, .comm = "server", .knows_phases = false, .knows_counters = false}};
  RunHeader header;
  header.not_recorded = {.selection = "--events user", .kinds = 7};
  const auto json = nlohmann::json::parse(interval_json(interval, header, nullptr));
  EXPECT_EQ(json["truncated"], true);
  EXPECT_EQ(json["not_recorded"], nlohmann::json({"phase", "counter"}));
  const auto& process = json["processes"][0];
  for (const char* const key : {"gc_share", "pauses", "worst_ns", "stw_led", "allocated_bytes"})
    EXPECT_EQ(process.value(key, nlohmann::json(0)), nlohmann::json()) << key;
  EXPECT_THAT(interval_text(interval, nullptr, 0), HasSubstr("the recording is truncated"));
}

TEST_F(IntervalSinkTest, AWaitCountsInEachInterval) {
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
  ASSERT_THAT(intervals, SizeIs(3));
  const std::array waited{0.5, 1.0, 0.25}, ran{0.5, 0.0, 0.75};
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_DOUBLE_EQ(intervals[i].processes.at(0).wait_share.value(), waited[i]) << i;
    EXPECT_DOUBLE_EQ(intervals[i].processes.at(0).cpu_share.value(), ran[i]) << i;
  }
  EXPECT_EQ(intervals[1].details.at(0).domains.at(0).state, "waits for a CPU");
}

TEST_F(IntervalSinkTest, FiguresOfAllIntervalsAddUp) {
  const AServer server;
  server.begin(sink);
  for (std::uint64_t i = 1; i < 50; ++i) server.serve(sink, i);
  sink.summary({.end_ns = AServer::begin_ns + 5 * second}, server.world->registry);
  std::uint64_t pauses = 0, events = 0, allocated = 0;
  for (const Interval& interval : intervals) {
    for (const ProcessFigures& process : interval.processes) {
      pauses += process.pauses;
      events += process.events;
      allocated += process.allocated_bytes;
    }
  }
  EXPECT_EQ(pauses, 49u);
  EXPECT_EQ(events, 49 * 8 + 1u);
  EXPECT_EQ(allocated, 49 * 100'000u);
}

TEST_F(IntervalSinkTest, APauseThatGoesOnCountsAsFarAsItGot) {
  const AServer server;
  server.begin(sink);
  server.feed(
      sink, test::Events(server.world->slot).add(AServer::begin_ns + second / 2, EventKind::begin, test::phase_major));
  sink.advance(AServer::begin_ns + 2 * second, server.world->registry);
  ASSERT_THAT(intervals, SizeIs(2));
  EXPECT_EQ(intervals[0].processes[0].worst_ns, second / 2);
  EXPECT_EQ(intervals[1].processes[0].worst_ns, 3 * second / 2);
  EXPECT_EQ(intervals[1].processes[0].pauses, 0u) << "none has ended";
  ASSERT_THAT(intervals[1].details, SizeIs(1));
  ASSERT_THAT(intervals[1].details[0].domains, SizeIs(1));
  EXPECT_EQ(intervals[1].details[0].domains[0].state, "in a pause for 1.50s, running");
}

TEST_F(IntervalSinkTest, DetailsAreOfTheWholeRun) {
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

TEST_F(IntervalSinkTest, AProcessThatEndedIsListedOnce) {
  const AServer server;
  server.begin(sink);
  server.serve(sink, 1);
  sink.advance(AServer::begin_ns + second, server.world->registry);
  server.feed(sink, test::Events(0).add_record(AServer::begin_ns + second, EventKind::process,
                                               ProcessRecord{server.world->process, 0, 0},
                                               static_cast<std::uint16_t>(ProcessAction::exit)));
  sink.advance(AServer::begin_ns + 3 * second, server.world->registry);
  ASSERT_THAT(intervals, SizeIs(3));
  ASSERT_THAT(intervals[0].processes, SizeIs(1));
  EXPECT_FALSE(intervals[0].processes[0].ended);
  ASSERT_THAT(intervals[1].processes, SizeIs(1));
  EXPECT_TRUE(intervals[1].processes[0].ended);
  EXPECT_THAT(interval_text(intervals[1], nullptr, 0), HasSubstr("server (ended)"));
  EXPECT_THAT(intervals[2].processes, IsEmpty());
  EXPECT_THAT(sink.details_of(server.world->process).domains, IsEmpty());
}

TEST_F(IntervalSinkTest, ManyProcessesOfOneProgramAreOneRow) {
  const AServer server;
  server.begin(sink);
  const auto add = [&](std::int32_t pid, const char* exe, std::uint64_t pause_ns) {
    ProcessInfo info = test::World::default_info();
    info.pid = pid;
    info.exe = exe;
    info.comm = "cc";
    const std::uint32_t slot = server.world->add_ring(server.world->registry.add_process(info));
    const std::uint64_t at = AServer::begin_ns + ms;
    server.feed(sink, test::Events(slot)
                          .add(at, Lifecycle::ring_start, pid)
                          .add(at, EventKind::begin, test::phase_major)
                          .add(at + pause_ns, EventKind::end, test::phase_major)
                          .add(at + pause_ns, EventKind::counter, AServer::counter("minor_allocated"), 1'000));
  };
  for (std::int32_t pid = 1; pid <= 6; ++pid) add(pid, "/bin/cc", static_cast<std::uint64_t>(pid) * ms);
  add(7, "/usr/bin/cc", ms);
  sink.advance(AServer::begin_ns + second, server.world->registry);
  ASSERT_THAT(intervals, SizeIs(1));
  EXPECT_THAT(intervals[0].processes, SizeIs(8));
  ASSERT_THAT(intervals[0].programs, SizeIs(1));
  const ProcessFigures& program = intervals[0].programs[0];
  EXPECT_EQ(program.processes, 6u);
  EXPECT_EQ(program.pauses, 6u);
  EXPECT_EQ(program.worst_ns, 6 * ms);
  EXPECT_EQ(program.allocated_bytes, 6'000u);
  EXPECT_THAT(intervals[0].rows(), SizeIs(3));
  EXPECT_THAT(interval_text(intervals[0], column_named("worst"), 0), testing::ContainsRegex("\n +x6  cc  "));
  EXPECT_THAT(interval_text(intervals[0], column_named("worst"), 0, true), testing::ContainsRegex("\n +6  cc  "));
  const auto json = nlohmann::json::parse(interval_json(intervals[0], sink.run(), nullptr));
  EXPECT_EQ(json["processes"].size(), 8u);
  EXPECT_EQ(json["programs"][0]["processes"], 6);
}

TEST_F(IntervalSinkTest, ALongGapHasNoEmptyIntervals) {
  const AServer server;
  server.begin(sink);
  server.serve(sink, 1);
  server.feed(sink, test::Events(server.world->slot).add(std::uint64_t{1} << 62, EventKind::begin, test::phase_major));
  sink.summary({.end_ns = std::uint64_t{1} << 62}, server.world->registry);
  EXPECT_LE(intervals.size(), 3u);
}

TEST_F(IntervalSinkTest, LossesAreShown) {
  const AServer server;
  server.begin(sink);
  server.feed(sink,
              test::Events(server.world->slot)
                  .add_record(AServer::begin_ns + ms, EventKind::lost,
                              Loss{.words = 1234, .from_ns = AServer::begin_ns, .to_ns = AServer::begin_ns + ms}, 0));
  sink.advance(AServer::begin_ns + second, server.world->registry);
  ASSERT_THAT(intervals, SizeIs(1));
  EXPECT_EQ(intervals[0].lost_words, 1234u);
  EXPECT_THAT(totals_text(intervals[0]), HasSubstr("1,234 words lost!"));
  EXPECT_THAT(interval_text(intervals[0], nullptr, 0), HasSubstr("1,234!"));
}

TEST_F(IntervalSinkTest, TextFitsATerminal) {
  const AServer server;
  server.begin(sink);
  server.serve(sink, 1);
  sink.advance(AServer::begin_ns + second, server.world->registry);
  const Column* const sorted_by = column_named("ev");
  std::string text = interval_text(intervals.at(0), sorted_by, 80);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("NAME"), HasSubstr("EV/s"), testing::Not(HasSubstr("LIVE%"))));
  const std::size_t table = text.rfind("    PID");
  for (std::size_t begin = table; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 80u) << text;
  for (const Column& column : all_columns())
    EXPECT_THAT(interval_text(intervals[0], sorted_by, 0), HasSubstr(std::string(column.title)));
}

TEST_F(IntervalSinkTest, HostileNamesControlNoTerminalAndAreValidJson) {
  for (const std::string& name : test::hostile_strings()) {
    const AServer server(name);
    intervals.clear();
    IntervalSink hostile({.details = true}, [this](Interval&& interval) { intervals.push_back(std::move(interval)); });
    server.begin(hostile);
    server.serve(hostile, 1);
    hostile.advance(AServer::begin_ns + second, server.world->registry);
    ASSERT_THAT(intervals, SizeIs(1));
    EXPECT_EQ(test::terminal_danger(interval_text(intervals[0], column_named("worst"), 0)), "");
    EXPECT_TRUE(nlohmann::json::accept(interval_json(intervals[0], hostile.run(), nullptr)));
  }
}

TEST(IntervalJson, HasTheTimeOfItsInterval) {
  std::vector<std::string> lines;
  const AServer server;
  IntervalSink sink({.interval_ns = 2 * second}, [&](const Interval& interval) {
    lines.push_back(interval_json(interval, sink.run(), column_named("worst")));
  });
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
