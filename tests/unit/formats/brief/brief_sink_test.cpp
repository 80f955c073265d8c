// SPDX-License-Identifier: MIT
#include "formats/brief/brief_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "formats/output/output.hpp"
#include "support/files.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using testing::AllOf, testing::Contains, testing::Each, testing::ElementsAre, testing::EndsWith, testing::HasSubstr,
    testing::IsEmpty, testing::Not, testing::SizeIs, testing::StartsWith;

constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms;

/// Without a time of day: lines begin with seconds since the run began.
class Brief : public testing::Test {
 protected:
  Brief() {
    world_.user_names = {{1, "request"}, {2, "query"}, {3, "value"}};
    make({});
  }
  void make(BriefOptions options) {
    output_.emplace();
    sink_.emplace(*output_, std::move(options));
    sink_->header({.version = "1"});
    sink_->flush();
    seen_ = output_->text().size();
  }
  void feed(const Events& events) { sink_->consume(events.batch(), world_.registry); }
  /// Times are in ms.
  void play(const std::string& script) {
    std::istringstream in{script};
    std::string scaled;
    std::uint64_t time = 0;
    for (std::string word; in >> time >> word;) scaled += std::to_string(time * ms) + " " + word + " ";
    feed(Events(world_.slot).add(scaled));
  }
  void process(std::uint64_t time_ms, ProcessAction action, std::int64_t detail = 0) {
    feed(Events(0).add_record(time_ms * ms, EventKind::process, ProcessRecord{world_.process, 0, detail},
                              static_cast<std::uint16_t>(action)));
  }
  void switches(std::uint64_t time_ms, const SchedSwitch& change) {
    feed(Events(0).add_record(time_ms * ms, EventKind::sched_switch, change, 0, first_sched_stream));
  }
  /// Those that were written since the last call.
  std::vector<std::string> lines() {
    sink_->flush();
    std::istringstream stream{output_->text().substr(seen_)};
    seen_ = output_->text().size();
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  /// Those of the first second.
  std::vector<std::string> first_second() {
    sink_->advance(second, world_.registry);
    return lines();
  }

  World world_;
  std::optional<StringOutput> output_;
  std::optional<BriefSink> sink_;
  std::size_t seen_ = 0;
};

TEST_F(Brief, LooksAsInTheGuide) {
  const Thread main = a_thread(4242, 4242, 0), other = a_thread(4242, 4243, 1);
  process(1, ProcessAction::exec);
  switches(2, leaves(competitor(), LeftState::sleeping, 9));  // of other threads: all are seen
  switches(2, enters(main, 0));
  switches(2, enters(other, 1));
  play("10 [1 12 >major 13 >major_mark 21 <major_mark 21 >major_sweep 24 <major_sweep 24 <major 30 ]1");
  play("40 >minor 40 <minor 50 [2 53 ]2 60 [2 64 ]2");
  switches(70, leaves(main, LeftState::preempted, 0, competitor()));
  switches(71, enters(main, 0, competitor()));
  play("80 >minor 81 >major_mark");
  switches(82, leaves(main, LeftState::preempted, 0, competitor()));
  switches(88, enters(main, 0, competitor()));
  play("90 <major_mark 90 <minor 95 ?");
  process(99, ProcessAction::exit, 0);
  sink_->summary({.start_ns = 0, .end_ns = 100 * ms}, world_.registry);
  EXPECT_EQ(output_->text(), golden("formats/brief/golden/brief.txt"));
}

TEST_F(Brief, NothingIsWrittenBeforeTheSecondEnds) {
  play("10 >major 24 <major");
  sink_->advance(second - 1, world_.registry);
  EXPECT_THAT(lines(), IsEmpty());
  sink_->advance(second, world_.registry);
  EXPECT_THAT(lines(), SizeIs(1));
  sink_->advance(9 * second, world_.registry);
  EXPECT_THAT(lines(), IsEmpty()) << "nothing happened";
}

TEST_F(Brief, WhatIsShortIsSummedUp) {
  feed(Events(world_.slot).add("1000 >minor 401000 <minor 500000 >minor 1100000 <minor 1200000 [1 2200000 ]1"));
  feed(Events(world_.slot).add(3 * ms, EventKind::user_int, 3, 42));
  EXPECT_THAT(first_second(),
              ElementsAre(EndsWith("server/4242   2 pauses, 1.00ms in all, longest 600µs; 1 × \"request\", "
                                   "longest 1.00ms; 1 other user event")));
}

TEST_F(Brief, WhatIsLostWhileProbesAreOffIsUnknown) {
  feed(Events(world_.slot)
           .add_record(5000, EventKind::lost, Loss{.words = 0, .from_ns = 4000, .to_ns = 5000},
                       static_cast<std::uint16_t>(LossReason::unprobed)));
  EXPECT_THAT(first_second(), ElementsAre(EndsWith("LOST unknown events: probes were off 1 time")));
}

TEST_F(Brief, LimitsCanBeGiven) {
  make({.min_ns = 2 * ms});
  play("10 >minor 11 <minor 20 >minor 22 <minor 30 [1 33 ]1");
  EXPECT_THAT(first_second(),
              ElementsAre(HasSubstr("2.00ms pause"), HasSubstr("3.00ms \"request\""), HasSubstr("1 pause, ")));
}

TEST_F(Brief, TheLongestHaveLinesIfThereAreTooMany) {
  for (int i = 0; i < 30; ++i) {
    const int begin = i * 30, end = begin + 2 + i % 20;
    play(std::to_string(begin) + " >major " + std::to_string(end) + " <major");
  }
  for (int i = 0; i < 40; ++i) process(900 + static_cast<std::uint64_t>(i), ProcessAction::exec);
  const auto shown = first_second();
  EXPECT_LE(shown.size(), BriefSink::max_lines);
  EXPECT_THAT(shown, Contains(HasSubstr("21.0ms pause")));
  EXPECT_THAT(shown, Not(Contains(HasSubstr("2.00ms pause"))));
  EXPECT_THAT(shown, Contains(HasSubstr("36 × exec")));
  EXPECT_THAT(shown, Contains(HasSubstr("20 pauses, ")));
}

TEST_F(Brief, ManyProgramsShareALine) {
  for (int i = 0; i < 40; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = 5000 + i;
    const std::uint32_t slot = world_.add_ring(world_.registry.add_process(info));
    feed(Events(slot).add("1000 >minor " + std::to_string(2000 + i) + " <minor"));
    feed(Events(slot).add_record(5000, EventKind::lost, Loss{.words = 2, .from_ns = 4000, .to_ns = 5000}));
  }
  const auto shown = first_second();
  EXPECT_LE(shown.size(), BriefSink::max_lines);
  EXPECT_THAT(shown, Contains(AllOf(HasSubstr("other programs"), HasSubstr("LOST 74 words; 37 pauses"))));
}

TEST_F(Brief, StallsHaveALine) {
  const Thread main = a_thread(4242, 4242, 0);
  process(1, ProcessAction::exec);
  std::uint64_t time = 2;
  for (int turn = 0; turn < 12; ++turn) {
    const std::uint64_t length = turn == 10 ? 80 : 1;
    switches(time, enters(main));
    SchedSwitch waits = leaves(main, LeftState::sleeping);
    waits.syscall = Syscall::epoll_wait;
    switches(time += length, waits);
    feed(Events(0).add_record((time += 10) * ms, EventKind::wakeup, wakes(main), 0, first_sched_stream));
  }
  EXPECT_THAT(first_second(), ElementsAre(HasSubstr("exec"), HasSubstr("d0  80.0ms stall: on CPU (no GC)")));
}

TEST_F(Brief, ASelectionKeepsTheCausesInOtherThreads) {
  make({.threads = {.domains = {1}}});
  switches(1, enters(a_thread(4242, 4242, 0), 0));
  switches(1, enters(a_thread(4242, 4243, 1), 1));
  play("10 >stw_leader@1 10 >stw_api_barrier@1 29 >stw_handler 29 <stw_api_barrier@1 30 <stw_handler 30 <stw_leader@1");
  play("40 [1 90 ]1 40 [1@1 90 ]1@1 100 >major 120 <major");
  EXPECT_THAT(first_second(), ElementsAre(AllOf(HasSubstr("d1  "), HasSubstr("for domain 0 to stop")),
                                          AllOf(HasSubstr("d1  "), HasSubstr("\"request\""))));
}

TEST_F(Brief, LinesFitTheTerminal) {
  make({.columns = 40});
  process(1, ProcessAction::exec);
  play("10 >major 24 <major");
  EXPECT_THAT(first_second(),
              ElementsAre(" 0.001000000  server/4242   exec  OCaml…", StartsWith(" 0.010000000  server")));
}

TEST_F(Brief, NamesCannotControlTheTerminal) {
  make({.color = false});
  for (const std::string& name : hostile_strings()) {
    world_.registry.process(world_.process).name = world_.registry.process(world_.process).comm = name.substr(0, 15);
    world_.user_names[1] = name;
    process(1, ProcessAction::exec);
    play("10 [1 30 ]1 40 [1 41 ]1 50 >minor 50 <minor");
    sink_->summary({.end_ns = second}, world_.registry);
    const auto shown = lines();
    EXPECT_THAT(shown, SizeIs(3));
    for (const std::string& line : shown) EXPECT_TRUE(line.find_first_of("\x1b\x07\r\t") == std::string::npos) << line;
    make({.color = false});
  }
}

}  // namespace
}  // namespace rtev::test
