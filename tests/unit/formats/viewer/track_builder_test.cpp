// SPDX-License-Identifier: MIT
#include "formats/viewer/track_builder.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "unit/formats/viewer/trace_log.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int32_t pid = 4242, other_tid = 4243;

class TrackBuilderTest : public ::testing::Test {
 protected:
  TrackBuilderTest() {
    world.user_names[1] = "request";
    world.user_names[2] = "query";
  }

  void draw(const Events& events) { builder.consume(events.batch(), world.registry); }
  std::vector<std::string> take() { return std::exchange(log.lines, {}); }

  static Thread thread(std::int32_t tid, std::int32_t domain = -1, ThreadRole role = ThreadRole::unknown) {
    Thread made = make_thread(pid, tid, "server", true);
    made.domain = domain;
    made.role = role;
    return made;
  }
  static Thread idle() { return make_thread(0, 0, "swapper/0", false); }

  /// A switch on a cpu; draws it.
  void change(std::uint64_t time, std::uint32_t cpu, const Thread& prev, const Thread& next,
              LeftState state = LeftState::sleeping) {
    draw(Events(0).add_record(time, EventKind::sched_switch,
                              SchedSwitch{.cpu = cpu, .state = state, .prev = prev, .next = next}, 0, 1));
  }
  Events ring() const { return Events(world.slot); }

  World world;
  TraceLog log;
  TrackBuilder builder{log};
};

TEST_F(TrackBuilderTest, Domain0RunsOnTheMainThread) {
  draw(ring().add("10 >minor 20 <minor"));
  EXPECT_THAT(log.names, ElementsAre("4242 server", "4242/4242 domain 0"));
  EXPECT_THAT(take(), ElementsAre("10 begin minor @domain 0", "20 end minor @domain 0"));
}

TEST_F(TrackBuilderTest, TracksOfDomainsThatEndedAreForgotten) {
  constexpr std::size_t domains = 1000;
  for (std::uint64_t time = 10; time < 10 + 10 * domains; time += 10) {
    draw(ring()
             .add(time, Lifecycle::domain_spawn, 0, 5)
             .add(time + 1, EventKind::begin, phase_minor, 0, 5)
             .add(time + 2, EventKind::end, phase_minor, 0, 5));
  }
  EXPECT_GE(log.forgotten.size(), domains - 2);
}

TEST_F(TrackBuilderTest, ARingWhoseThreadIsNotKnownHasATrackOfItsOwn) {
  draw(ring().add("10 >minor@3 20 <minor@3"));
  EXPECT_THAT(log.names, Contains("4242/ring domain 3"));
  EXPECT_THAT(take(), ElementsAre("10 begin minor @domain 3", "20 end minor @domain 3"));
}

TEST_F(TrackBuilderTest, TheSchedulerTellsWhichThreadRunsADomain) {
  change(5, 0, idle(), thread(other_tid, 3, ThreadRole::mutator));
  draw(ring().add(10, EventKind::counter, counter_minor_allocated, 1, 3));
  EXPECT_THAT(log.names, ElementsAre("4242 server", "4242/4243 domain 3"));
}

TEST_F(TrackBuilderTest, TheOnlyNewThreadOnACpuRunsTheNewDomain) {
  change(5, 0, idle(), thread(other_tid));
  draw(ring().add(10, EventKind::counter, counter_minor_allocated, 1, 1));
  EXPECT_THAT(log.names, Contains("4242/4243 domain 1"));
}

TEST_F(TrackBuilderTest, TheOldestThreadOfADomainIsItsOwn) {
  const Thread younger = thread(4250, 3, ThreadRole::mutator), older = thread(4244, 3, ThreadRole::mutator),
               youngest = thread(7, 3, ThreadRole::mutator);
  change(1, 0, idle(), younger);
  EXPECT_THAT(log.names, Contains("4242/4250 domain 3"));
  change(2, 0, younger, older);
  EXPECT_THAT(log.names, Contains("4242/4250 domain 3 systhread"));
  EXPECT_THAT(log.names, Contains("4242/4244 domain 3"));
  change(3, 0, older, youngest);
  EXPECT_THAT(log.names, Contains("4242/7 domain 3 systhread")) << "numbers had gone round";
}

TEST_F(TrackBuilderTest, ThreadOfADomainThatEndedDrawsForNoOther) {
  change(1, 0, idle(), thread(other_tid, 3, ThreadRole::mutator));
  draw(ring().add("10 !domain_spawn@3 20 !domain_terminate@3 30 !domain_spawn@3"));
  EXPECT_THAT(take(), ElementsAre("1 cpu 0: idle -> domain 3", "10 point domain_spawn @domain 3",
                                  "20 point domain_terminate @domain 3", "30 point domain_spawn @domain 3 #2"));
}

TEST_F(TrackBuilderTest, ThreadsOfOneDomainTakeTurnsAndTheBackupThreadServesAsLast) {
  const Thread main = thread(pid, 0, ThreadRole::mutator), second = thread(other_tid, 0, ThreadRole::mutator),
               backup = thread(4244, 0, ThreadRole::backup);
  change(1, 0, idle(), main);
  draw(ring().add(2, EventKind::user_unit, 1));
  change(3, 1, idle(), backup);
  draw(ring().add(4, EventKind::user_unit, 1));
  change(5, 0, main, second);
  draw(ring().add(6, EventKind::user_unit, 1));
  change(7, 0, second, idle());
  draw(ring().add("8 >minor 9 <minor"));
  EXPECT_THAT(take(),
              ElementsAre("1 cpu 0: idle -> domain 0", "2 point request @domain 0", "3 cpu 1: idle -> domain 0 backup",
                          "4 point request @domain 0", "5 cpu 0: domain 0 -> domain 0 systhread",
                          "6 point request @domain 0 systhread", "7 cpu 0: domain 0 systhread -> idle",
                          "8 begin minor @domain 0 backup", "9 end minor @domain 0 backup"));
}

TEST_F(TrackBuilderTest, SpansStayOnTheThreadThatBeganThem) {
  const Thread main = thread(pid, 0, ThreadRole::mutator), second = thread(other_tid, 0, ThreadRole::mutator);
  change(1, 0, idle(), main);
  draw(ring().add(2, EventKind::user_begin, 1));
  change(3, 0, main, second);
  take();
  draw(ring().add("4 [2 5 ]2 6 ]1"));
  EXPECT_THAT(take(), ElementsAre("4 begin query @domain 0 systhread", "5 end query @domain 0 systhread",
                                  "6 end request @domain 0"));
}

TEST_F(TrackBuilderTest, WhileAThreadWaitsOthersOfItsDomainHaveSpansOfTheirOwn) {
  const Thread main = thread(pid, 0, ThreadRole::mutator), backup = thread(other_tid, 0, ThreadRole::backup);
  change(1, 0, idle(), main);
  draw(ring().add("2 >major 3 >domain_condition_wait"));
  change(4, 0, main, backup);
  draw(ring().add("5 >minor 6 <minor"));
  change(7, 0, backup, main);
  draw(ring().add("8 <domain_condition_wait 9 <major"));
  EXPECT_THAT(take(), ElementsAre("1 cpu 0: idle -> domain 0", "2 begin major @domain 0",
                                  "3 begin domain_condition_wait @domain 0", "4 cpu 0: domain 0 -> domain 0 backup",
                                  "5 begin minor @domain 0 backup", "6 end minor @domain 0 backup",
                                  "7 cpu 0: domain 0 backup -> domain 0", "8 end domain_condition_wait @domain 0",
                                  "9 end major @domain 0"));
}

TEST_F(TrackBuilderTest, SpansThatDoNotNestAreInterruptedAndResumed) {
  draw(ring().add("10 [1 20 [2 30 ]1 40 ]2"));
  EXPECT_THAT(take(), ElementsAre("10 begin request @domain 0", "20 begin query @domain 0",
                                  "30 close query @domain 0 (interrupted)", "30 end request @domain 0",
                                  "30 open query @domain 0 (resumed)", "40 end query @domain 0"));
}

TEST_F(TrackBuilderTest, APhaseTakesThePhasesInsideWithIt) {
  draw(ring().add("10 >major 20 >minor 30 <major"));
  EXPECT_THAT(take(), ElementsAre("10 begin major @domain 0", "20 begin minor @domain 0",
                                  "30 close minor @domain 0 (interrupted)", "30 end major @domain 0"));
}

TEST_F(TrackBuilderTest, SpansThatBeganBeforeAreDrawnAroundAllThatIsKnown) {
  draw(ring().add("5000 <minor 5010 [2 5020 <major 5030 ]2"));
  EXPECT_THAT(take(), ElementsAre("4999 open minor @domain 0 (began before)", "5000 end minor @domain 0",
                                  "5010 begin query @domain 0", "5020 close query @domain 0 (interrupted)",
                                  "4998 open major @domain 0 (began before)", "5020 end major @domain 0",
                                  "5020 open query @domain 0 (resumed)", "5030 end query @domain 0"));
}

TEST_F(TrackBuilderTest, EndsWithoutRoomForABeginAreStray) {
  Events events = ring();
  for (int i = 0; i < 2000; ++i) events.add(5000, EventKind::end, phase_minor);
  draw(events);
  EXPECT_THAT(log.lines.back(), "5000 stray minor @domain 0");
}

TEST_F(TrackBuilderTest, LossesCloseWhatIsOpen) {
  draw(ring()
           .add(1000, EventKind::begin, phase_minor)
           .add_record(3000, EventKind::lost, Loss{.words = 64, .from_ns = 1500, .to_ns = 3000}, 0)
           .add(3100, EventKind::end, phase_minor));
  EXPECT_THAT(take(), ElementsAre("1000 begin minor @domain 0", "1500 close minor @domain 0 (lost)",
                                  "3000 lost lost @domain 0 64", "2999 open minor @domain 0 (began before)",
                                  "3100 end minor @domain 0"));
}

TEST_F(TrackBuilderTest, DroppedSchedulerEventsCloseNothingAndNeedNoTrack) {
  draw(ring().add(1000, EventKind::begin, phase_minor));
  draw(Events(0)
           .add_record(1500, EventKind::lost, Loss{.words = 64, .from_ns = 1500, .to_ns = 3000},
                       static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream)
           .add_bytes(1600, EventKind::lost, "short", static_cast<std::uint16_t>(LossReason::dropped),
                      first_sched_stream));
  draw(ring().add(3100, EventKind::end, phase_minor));
  EXPECT_THAT(take(), ElementsAre("1000 begin minor @domain 0", "1500 dropped 64", "1600 malformed",
                                  "3100 end minor @domain 0"));
}

TEST_F(TrackBuilderTest, ADomainIdUsedAgainIsAnotherTrack) {
  draw(ring().add("10 >minor@3 20 !domain_terminate@3 30 !domain_spawn@3").add(40, EventKind::user_unit, 1, 0, 3));
  EXPECT_THAT(take(), ElementsAre("10 begin minor @domain 3", "20 point domain_terminate @domain 3",
                                  "20 close minor @domain 3 (domain ended)", "30 point domain_spawn @domain 3 #2",
                                  "40 point request @domain 3 #2"));
}

TEST_F(TrackBuilderTest, EventsBeforeASpawnEventAreOfTheNewDomain) {
  draw(
      ring().add("10 >minor@3 20 !domain_spawn@3 30 <minor@3 40 !domain_terminate@3 50 >minor@3 "
                 "60 !domain_spawn@3 70 <minor@3"));
  EXPECT_THAT(take(),
              ElementsAre("10 begin minor @domain 3", "20 point domain_spawn @domain 3", "30 end minor @domain 3",
                          "40 point domain_terminate @domain 3", "50 begin minor @domain 3 #2",
                          "60 point domain_spawn @domain 3 #2", "70 end minor @domain 3 #2"));
}

TEST_F(TrackBuilderTest, ARingThatBeginsAnewClosesWhatIsOpen) {
  draw(ring().add("10 >minor 20 !ring_start"));
  EXPECT_THAT(take(), ElementsAre("10 begin minor @domain 0", "20 close minor @domain 0 (domain ended)",
                                  "20 point ring_start @domain 0"));
}

TEST_F(TrackBuilderTest, InnerSpansContinueBehindTooManyOuterOnes) {
  Events events = ring();
  for (int i = 0; i < 256; ++i) events.add(10, EventKind::user_begin, 1);
  draw(events.add(20, EventKind::begin, phase_minor));
  const std::vector<std::string> lines = take();
  EXPECT_EQ(std::ranges::count(lines, "20 close request @domain 0 (interrupted)"), 256);
  EXPECT_EQ(std::ranges::count(lines, "20 open request @domain 0 (resumed)"), 128);
  EXPECT_EQ(lines.back(), "20 begin minor @domain 0");
}

TEST_F(TrackBuilderTest, AnExitClosesWhatIsOpen) {
  draw(ring().add(10, EventKind::begin, phase_minor));
  draw(Events(0).add_record(20, EventKind::process, ProcessRecord{world.process, 0, 0},
                            static_cast<std::uint16_t>(ProcessAction::exit)));
  EXPECT_THAT(take(), ElementsAre("10 begin minor @domain 0", "20 process exit @domain 0",
                                  "20 close minor @domain 0 (process ended)"));
  change(2'000'000'000, 0, idle(), make_thread(9, 9, "ls", false));
  EXPECT_THAT(log.forgotten, Contains(pid));
}

TEST_F(TrackBuilderTest, TheEndOfTheRecordingClosesWhatIsOpen) {
  change(5, 0, idle(), thread(pid, 0, ThreadRole::mutator));
  draw(ring().add("10 [1 11 >minor"));
  take();
  builder.finish(50, world.registry);
  EXPECT_THAT(take(), ElementsAre("50 close minor @domain 0 (recording ended)",
                                  "50 close request @domain 0 (recording ended)", "50 left cpu 0: domain 0"));
}

TEST_F(TrackBuilderTest, ArrowsLeadFromTheLeaderOfAStopTheWorldToThoseWhoTakePart) {
  draw(ring()
           .add(1, EventKind::user_unit, 1, 0, 0)
           .add(2, EventKind::user_unit, 1, 0, 1)
           .add(3, EventKind::user_unit, 1, 0, 2));
  take();
  draw(ring().add("10 >stw_leader@1 12 >stw_handler@2 13 >stw_handler 14 >stw_handler"));
  EXPECT_THAT(take(), ElementsAre("10 begin stw_leader @domain 1 ->1 ->3", "12 begin stw_handler @domain 2 <-3",
                                  "13 begin stw_handler @domain 0 <-1", "14 begin stw_handler @domain 0"));
}

TEST_F(TrackBuilderTest, ThreadsThatLeftUnseenAreTakenOffTheirCpu) {
  const Thread ours = thread(pid, 0, ThreadRole::mutator);
  const Thread one = make_thread(77, 77, "cc1", false), two = make_thread(88, 88, "ld", false);
  change(10, 0, ours, one, LeftState::preempted);
  change(30, 0, two, ours);     // cc1 made way for ld at a time that nobody was told
  change(40, 1, idle(), ours);  // and the switch that took the program from cpu 0 was dropped
  EXPECT_THAT(take(), ElementsAre("10 cpu 0: domain 0 -> cc1", "10 left cpu 0: cc1", "30 cpu 0: ld -> domain 0",
                                  "40 left cpu 0: domain 0", "40 cpu 1: idle -> domain 0"));
}

TEST_F(TrackBuilderTest, OtherProgramsAreNamedByTheirThreads) {
  change(10, 0, make_thread(77, 78, "worker", false), make_thread(77, 77, "cc1", false));
  EXPECT_THAT(log.names, ElementsAre("77 worker", "77/78 worker", "77 cc1", "77/77 cc1"));
}

TEST_F(TrackBuilderTest, DeadThreadsAndTheirOpenSpansAreForgotten) {
  const Thread second = thread(other_tid, 0, ThreadRole::mutator);
  change(1, 0, idle(), second);
  draw(ring().add(2, EventKind::user_begin, 1));
  change(3, 0, second, idle(), LeftState::dead);
  EXPECT_THAT(log.forgotten, ElementsAre(other_tid));
  EXPECT_THAT(log.lines, Contains("3 close request @domain 0 (process ended)"));
  take();
  draw(ring().add(4, EventKind::user_unit, 1));
  EXPECT_THAT(take(), ElementsAre("4 point request @domain 0"));
}

TEST_F(TrackBuilderTest, BrokenPayloadsAreNotDrawn) {
  draw(Events(0)
           .add_bytes(1, EventKind::sched_switch, "short")
           .add_bytes(2, EventKind::wakeup, "")
           .add_bytes(3, EventKind::process, "x"));
  EXPECT_THAT(take(), ElementsAre("1 malformed", "2 malformed", "3 malformed"));
}

/// Begins and ends on a track, put in order of time as viewers do.
class Nesting {
 public:
  void check(const std::vector<std::string>& lines) {
    std::multimap<std::uint64_t, std::string> sorted;  // keeps the order of what is inserted with equal keys
    for (const std::string& line : lines) sorted.emplace(std::stoull(line), line.substr(line.find(' ') + 1));
    std::map<std::string, std::vector<std::string>> open;
    for (const auto& [time, line] : sorted) {
      const std::string what = line.substr(0, line.find(' '));
      if (!line.contains('@')) continue;
      const std::string rest = line.substr(line.find(' ') + 1);
      const std::string name = rest.substr(0, rest.find(' '));
      std::string track = rest.substr(rest.find('@'));
      track = track.substr(0, track.find(" ("));
      if (what == "begin" || what == "open") open[track].push_back(name);
      if (what == "end" || what == "close") {
        ASSERT_FALSE(open[track].empty()) << time << " " << line;
        EXPECT_EQ(open[track].back(), name) << time << " " << line;
        open[track].pop_back();
      }
    }
    for (const auto& [track, spans] : open) EXPECT_THAT(spans, IsEmpty()) << track;
  }
};

TEST_F(TrackBuilderTest, WhateverComesItNests) {
  log.with_ids = true;
  std::mt19937 random(7);
  const auto any = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
  std::uint64_t time = 100'000;
  for (int i = 0; i < 20'000; ++i) {
    time += any(40);
    const auto domain = static_cast<std::uint16_t>(any(2));
    switch (any(19)) {
      case 0: {
        const auto tid = static_cast<std::int32_t>(pid + domain);
        change(time, any(1), thread(tid, domain, ThreadRole::mutator), idle(),
               any(9) == 0 ? LeftState::dead : LeftState::sleeping);
        break;
      }
      case 1:
        change(time, any(1), idle(), thread(static_cast<std::int32_t>(pid + any(5)), domain, ThreadRole::mutator));
        break;
      case 2:
        if (any(5) == 0)
          draw(ring().add_record(time, EventKind::lost, Loss{9, time - std::min<std::uint64_t>(any(90), time), time}, 0,
                                 domain));
        break;
      case 3:
        draw(ring().add(time, any(1) == 0 ? Lifecycle::domain_spawn : Lifecycle::domain_terminate, 0, domain));
        break;
      default: {
        const EventKind kinds[] = {EventKind::begin, EventKind::end, EventKind::user_begin, EventKind::user_end};
        const EventKind kind = kinds[any(3)];
        const bool user = kind == EventKind::user_begin || kind == EventKind::user_end;
        const auto id = static_cast<std::uint16_t>(user ? 1 + any(1) : (any(1) == 0 ? phase_minor : phase_major));
        draw(ring().add(time, kind, id, 0, domain));
      }
    }
  }
  builder.finish(time, world.registry);
  Nesting().check(log.lines);
}

}  // namespace
}  // namespace rtev::test
