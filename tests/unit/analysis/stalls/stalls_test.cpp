// SPDX-License-Identifier: MIT
// Event loops: which threads have one, which turns are stalls, what happened in them, and the reports.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/stalls/stalls_sink.hpp"
#include "base/utf8.hpp"
#include "support/files.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not, testing::SizeIs, testing::StartsWith;

constexpr std::uint64_t ms = 1'000'000;

class StallsTest : public testing::Test {
 protected:
  StallsTest() {
    world.user_names = {{1, "request"}, {2, "query"}};
    make({});
  }
  void make(StallsOptions options) {
    stalls.emplace(std::move(options));
    now = 1000 * ms;
    stalls->header({.version = "1.2", .start_ns = now});
    feed(Events(0).add_record(now, EventKind::process, ProcessRecord{world.process, 0, 0},
                              static_cast<std::uint16_t>(ProcessAction::found)));
  }
  void feed(const Events& events) { stalls->consume(events.batch(), world.registry); }
  void play(const std::string& script, std::uint64_t base_ns) { feed(Events(world.slot).add(script, base_ns)); }
  void switches(const SchedSwitch& change) {
    feed(Events(0).add_record(now, EventKind::sched_switch, change, 0, first_sched_stream));
  }
  void wakeup(const Thread& thread) {
    feed(Events(0).add_record(now, EventKind::wakeup, wakes(thread), 0, first_sched_stream));
  }
  static Thread main_thread() { return a_thread(4242, 4242, 0); }

  /// It goes on for that long, with what it does now.
  void after(std::uint64_t ns) { now += ns; }
  void wait(const Thread& thread = main_thread(), Syscall call = Syscall::select) {
    switches(blocks(thread, call));
    after(10 * ms);
    wakeup(thread);
    switches(enters(thread));
  }
  /// It is blocked outside of its loop for that long.
  void block(std::uint64_t ns, Syscall call, LeftState state = LeftState::sleeping) {
    switches(blocks(main_thread(), call, state));
    after(ns);
    wakeup(main_thread());
    switches(enters(main_thread()));
  }
  /// Turns of 1 ms.
  void usual_turns(int count = 20, const Thread& thread = main_thread(), Syscall call = Syscall::select) {
    // The stream has the switches between other threads, too.
    feed(Events(0).add_record(now, EventKind::sched_switch, leaves(competitor(), LeftState::sleeping, 9)));
    for (int i = 0; i < count; ++i) {
      wait(thread, call);
      after(ms);
    }
  }
  const StallsReport& report() {
    stalls->summary({.end_ns = now}, world.registry);
    return stalls->report();
  }
  /// Of the only program.
  LoopProgram program() {
    const auto& programs = report().programs;
    EXPECT_THAT(programs, SizeIs(1));
    return programs.empty() ? LoopProgram{} : programs.front();
  }
  /// The only one.
  Stall stall() {
    const LoopProgram found = program();
    EXPECT_THAT(found.stalls, SizeIs(1));
    return found.stalls.empty() ? Stall{} : found.stalls.front();
  }

  World world;
  std::uint64_t now = 0;
  std::optional<Stalls> stalls;
};

TEST_F(StallsTest, AreLongTurnsOfALoop) {
  usual_turns();
  wait();
  const std::uint64_t begin_ns = now;
  after(203 * ms);
  usual_turns();
  const Stall found = stall();
  EXPECT_EQ(found.begin_ns, begin_ns);
  EXPECT_EQ(found.length_ns(), 203 * ms);
  EXPECT_EQ(found.time.code, 203 * ms);
  EXPECT_EQ(found.tid, 4242);
  EXPECT_EQ(found.domain, 0);
  EXPECT_TRUE(found.has_returned);
}

TEST_F(StallsTest, SampledStacksSayWhereItWas) {
  StackTable& stacks = world.registry.stacks();
  const auto in = [&](std::string_view function) {
    return stacks.add_stack(
        0, stacks.add_frame({.kind = FrameKind::ocaml, .line = 42, .function = function, .file = "a.ml"}));
  };
  const auto sampled = [&](SampleKind kind, StackIndex stack, std::uint64_t weight) {
    Sample sample{};
    sample.pid = sample.tid = 4242;
    sample.stack = stack;
    sample.weight = weight;
    feed(Events(0).add_record(now, EventKind::sample, sample, static_cast<std::uint16_t>(kind), sample_stream));
  };
  sampled(SampleKind::on_cpu, in("Before.f"), 500 * ms);
  after(ms);
  usual_turns();
  wait();
  after(20 * ms);
  sampled(SampleKind::on_cpu, in("Parse.run"), 10 * ms);
  block(100 * ms, Syscall::futex);
  sampled(SampleKind::off_cpu, in("Stats.bump"), 100 * ms);
  usual_turns();
  const Stall found = stall();
  EXPECT_EQ(stall_activity(found, &stacks, false),
            "100ms blocked in a lock (futex) in Stats.bump a.ml:42, 20.0ms on CPU (no GC)");
  EXPECT_THAT(found.stacks, SizeIs(2)) << "not what was before";
  EXPECT_THAT(stalls->report_text(), HasSubstr("in Stats.bump a.ml:42"));
  EXPECT_EQ(nlohmann::json::parse(stalls->report_json())["programs"][0]["stalls"][0]["stacks"].size(), 2u);
}

TEST_F(StallsTest, TurnsAreKnownByTheirCalls) {
  for (const Syscall call : {Syscall::select, Syscall::poll, Syscall::epoll_wait, Syscall::io_uring_enter}) {
    make({});
    usual_turns(20, main_thread(), call);
    EXPECT_EQ(program().call, call);
    EXPECT_EQ(program().turns.count(), 19u);
  }
  for (const Syscall call : {Syscall::read, Syscall::futex, Syscall::sleep, Syscall::none, Syscall::other}) {
    make({});
    usual_turns(20, main_thread(), call);
    EXPECT_THAT(report().programs, IsEmpty());
  }
}

TEST_F(StallsTest, WithoutSystemCallsAnySleepIsAWaitForEvents) {
  usual_turns(20, main_thread(), Syscall::unknown);
  wait(main_thread(), Syscall::unknown);
  block(60 * ms, Syscall::unknown, LeftState::uninterruptible);
  wait(main_thread(), Syscall::unknown);
  EXPECT_EQ(stall().time.blocked, 60 * ms);
  EXPECT_FALSE(report().syscalls_seen);
  EXPECT_THAT(stalls->report_text(), HasSubstr("any sleep counts as a wait for events\n"));
}

TEST_F(StallsTest, AFewWaitsMakeNoLoop) {
  usual_turns(static_cast<int>(EventLoop::min_turns));
  wait();
  after(203 * ms);
  EXPECT_THAT(report().programs, SizeIs(1));
  make({});
  usual_turns(3);
  wait();
  after(203 * ms);
  wait();
  EXPECT_THAT(report().programs, IsEmpty());
}

TEST_F(StallsTest, LongTurnsMayBeUsual) {
  for (int i = 0; i < 20; ++i) {
    wait();
    after(60 * ms);
  }
  wait();
  after(290 * ms);
  wait();
  EXPECT_THAT(program().stalls, IsEmpty());
}

TEST_F(StallsTest, ThreadsOfTheRuntimeHaveNoLoops) {
  Thread tick = a_thread(4242, 4243, 0);
  tick.role = ThreadRole::tick;
  usual_turns(20, tick);
  EXPECT_THAT(report().programs, IsEmpty());
}

TEST_F(StallsTest, TheirTimeIsSplit) {
  usual_turns();
  wait();
  play("1 >major", now);
  after(20 * ms);
  block(30 * ms, Syscall::futex);  // until the other domains have stopped
  play("1 <major", now);
  after(10 * ms);
  switches(leaves(main_thread(), LeftState::preempted, 0, competitor()));
  after(40 * ms);
  switches(enters(main_thread(), 0, competitor()));
  block(50 * ms, Syscall::fsync, LeftState::uninterruptible);
  wait();
  const Stall found = stall();
  EXPECT_EQ(found.time.gc, 20 * ms);
  EXPECT_EQ(found.time.domains, 30 * ms);
  EXPECT_EQ(found.time.no_cpu, 40 * ms);
  EXPECT_EQ(found.time.blocked, 50 * ms);
  EXPECT_EQ(found.time.code, 10 * ms);
  EXPECT_EQ(found.time.total(), found.length_ns());
  EXPECT_EQ(found.blocked_in, Syscall::fsync);
  EXPECT_EQ(found.blocked_in_ns, 50 * ms);
  ASSERT_TRUE(found.behind);
  EXPECT_EQ(found.behind->thread.comm(), "hog");
  EXPECT_EQ(found.behind->ns, 40 * ms);
}

TEST_F(StallsTest, EventsThatComeBeforeItSleepsEndATurn) {
  usual_turns();
  wait();
  after(40 * ms);
  wakeup(main_thread());
  switches(blocks(main_thread(), Syscall::select));
  after(1000);
  switches(enters(main_thread()));
  after(40 * ms);
  wait();
  EXPECT_THAT(program().stalls, IsEmpty());
  EXPECT_EQ(program().turns.max(), 40 * ms + 1000);
}

TEST_F(StallsTest, NameTheSpanThatWasOpenLongest) {
  usual_turns();
  wait();
  play("1000 [1 2000000 [2 50000000 ]2 99000000 ]1", now);
  after(100 * ms);
  usual_turns(2);
  wait();
  play("1000 [2", now);
  after(70 * ms);
  wait();
  const auto found = program().stalls;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].span, "request");
  EXPECT_EQ(found[1].span, "query") << "it is still open";
}

TEST_F(StallsTest, NameSpansOfLibraries) {
  world.user_names = {{1, "trace.span.enter"}, {2, "trace.span.exit"}, {3, "eio.fiber"}, {4, "eio.enter_span"}};
  const auto text = [&](std::uint64_t time, std::uint16_t id, std::string_view name) {
    feed(Events(world.slot).add_bytes(now + time, EventKind::user_custom, name, id));
  };
  usual_turns();
  wait();
  text(1000, 1, "parse");
  text(2000, 1, "query");
  text(90 * ms, 2, "parse");
  text(99 * ms, 2, "query");
  after(100 * ms);
  usual_turns(2);
  wait();
  feed(Events(world.slot).add(now, EventKind::user_int, 3, 7));
  text(1000, 4, "accept");
  after(70 * ms);
  wait();
  const auto found = program().stalls;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].span, "query");
  EXPECT_EQ(found[1].span, "accept");
}

TEST_F(StallsTest, NameTheFiberThatRanForHalfOfThem) {
  world.user_names = {{3, "eio.fiber"}};
  const auto fiber = [&](std::uint64_t id) { feed(Events(world.slot).add(now, EventKind::user_int, 3, id)); };
  usual_turns();
  wait();
  fiber(7);
  after(150 * ms);
  fiber(8);
  after(50 * ms);
  wait();
  usual_turns(2);
  wait();
  for (std::uint64_t id = 20; id < 24; ++id) {
    fiber(id);
    after(40 * ms);
  }
  wait();
  const auto found = program().stalls;
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].task, "fiber 7");
  EXPECT_EQ(found[1].task, "");
  EXPECT_THAT(stalls->report_text(), HasSubstr("on CPU (no GC), in fiber 7"));
}

TEST_F(StallsTest, OneMayGoOnAtTheEnd) {
  usual_turns();
  wait();
  after(300 * ms);
  EXPECT_EQ(stall().length_ns(), 300 * ms);
  EXPECT_FALSE(stall().has_returned);
  EXPECT_THAT(stalls->report_text(), HasSubstr("it went on at the end"));
}

TEST_F(StallsTest, AThreadThatEndsDoesNotStall) {
  usual_turns();
  wait();
  after(300 * ms);
  switches(leaves(main_thread(), LeftState::dead));
  EXPECT_THAT(program().stalls, IsEmpty());
  EXPECT_EQ(program().turns.count(), 20u);
}

TEST_F(StallsTest, TurnsWithUnknownPartsAreNone) {
  usual_turns();
  wait();
  after(100 * ms);
  feed(Events(0).add_record(now, EventKind::lost, Loss{.words = 3, .from_ns = now - 50 * ms, .to_ns = now},
                            static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream));
  after(100 * ms);
  wait();
  EXPECT_THAT(program().stalls, IsEmpty());
  EXPECT_EQ(program().unknown_turns, 1u);
  EXPECT_THAT(stalls->report_text(), HasSubstr("warning: what threads did is unknown for "));
}

TEST_F(StallsTest, MemoryIsBounded) {
  for (std::int32_t tid = 1; tid <= 2 * static_cast<std::int32_t>(Stalls::max_loops); ++tid)
    wait(a_thread(4242, 4242 + tid, 0));
  EXPECT_EQ(report().not_followed, Stalls::max_loops);
  make({.min_ns = 2 * ms});
  usual_turns(1000);
  for (int i = 0; i < 300; ++i) {
    wait();
    after(20 * ms);
  }
  EXPECT_THAT(program().stalls, SizeIs(Stalls::max_stalls));
}

TEST_F(StallsTest, NoLoop) {
  switches(enters(main_thread()));
  after(900 * ms);
  EXPECT_THAT(report().programs, IsEmpty());
  EXPECT_THAT(stalls->report_text(), StartsWith("no thread has an event loop: "));
  make({});
  EXPECT_THAT(report().programs, IsEmpty());
  EXPECT_THAT(stalls->report_text(), StartsWith("no scheduler events: "));
}

TEST_F(StallsTest, LimitsApplyToThem) {
  usual_turns();
  wait();
  after(203 * ms);
  wait();
  report();
  const auto limited = stalls->limited().all;
  ASSERT_THAT(limited, SizeIs(1));
  EXPECT_EQ(limited[0].durations->max(), 203 * ms);
  EXPECT_EQ(limited[0].durations->count(), 1u);
}

TEST_F(StallsTest, Reports) {
  for (const bool full : {false, true}) {
    make({.full = full, .input = "evloop.fxt"});
    usual_turns();
    wait();
    play("1 [1", now);
    after(203 * ms);
    play("1 ]1", now);
    usual_turns();
    wait();
    block(90 * ms, Syscall::read);
    wait();
    switches(leaves(main_thread(), LeftState::preempted, 0, competitor()));
    after(80 * ms);
    switches(enters(main_thread(), 0, competitor()));
    for (int i = 0; i < 12; ++i) {
      wait();
      after(60 * ms);
    }
    wait();
    report();
    const std::string text = stalls->report_text();
    if (!full) {
      EXPECT_LE(std::ranges::count(text, '\n'), 22) << text;
    }
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 100u) << text;
    if (!full) {
      EXPECT_EQ(nlohmann::json::parse(stalls->report_json()),
                nlohmann::json::parse(golden("analysis/golden/stalls.json")));
    }
    EXPECT_EQ(text, golden(full ? "analysis/golden/stalls_full.txt" : "analysis/golden/stalls.txt"));
  }
}

TEST_F(StallsTest, ReportsSayThatThreadsWereSampled) {
  make({.sample_interval_ns = 10 * ms});
  usual_turns();
  report();
  EXPECT_EQ(stalls->report_text(),
            "server/4242: no stall of 50.0ms or longer\n\n"
            "main threads were sampled every 10.0ms: without BPF (rtev-bpf doctor) nothing better is known\n");
  EXPECT_EQ(nlohmann::json::parse(stalls->report_json())["sample_interval_ns"], 10 * ms);
}

TEST_F(StallsTest, NamesAreEscaped) {
  for (const std::string& name : hostile_strings()) {
    make({});
    world.user_names[1] = world.registry.process(world.process).comm = name;
    usual_turns();
    wait();
    play("1 [1", now);
    after(203 * ms);
    wait();
    report();
    for (const char c : stalls->report_text()) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ');
    EXPECT_TRUE(nlohmann::json::accept(stalls->report_json()));
    EXPECT_EQ(std::ranges::count(stalls->report_json(), '\n'), 1);
  }
}

}  // namespace
}  // namespace rtev::test
