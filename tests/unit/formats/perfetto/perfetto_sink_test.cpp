// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_sink.hpp"

#include <gmock/gmock.h>

#include <array>

#include "unit/formats/perfetto/perfetto_world.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

using Perfetto = PerfettoTest;

std::uint16_t phase(std::string_view name) {
  return static_cast<std::uint16_t>(*find_phase(Family::since_5_3, name));
}

TEST_F(Perfetto, HeaderTellsClocksAndKernel) {
  const PerfettoTrace trace = finish();
  EXPECT_EQ(trace.kernel, "6.18.0-1");
  EXPECT_THAT(trace.clocks, ElementsAre(Pair(1, 1'700'000'000'000'000'000U), Pair(3, 1'000), Pair(6, 1'000)));
  const auto& instants = trace.track("rtev-bpf").instants;
  ASSERT_THAT(instants, SizeIs(2));
  EXPECT_EQ(instants[0].time, 1'000U);
  EXPECT_EQ(instants[0].name, "recording starts");
  EXPECT_EQ(instants[0].details.at("command"), "rtev-bpf record");
  EXPECT_EQ(instants[0].details.at("host"), "box");
}

TEST_F(Perfetto, SpansLieOnTheThreadUnderItsRealIds) {
  draw(ring()
           .add(2'000, EventKind::user_begin, 1)
           .add(2'100, EventKind::begin, phase_minor)
           .add(2'200, EventKind::end, phase_minor)
           .add(2'300, EventKind::user_end, 1));
  const PerfettoTrace trace = finish();
  EXPECT_EQ(trace.processes.at(pid), "server");
  EXPECT_EQ(trace.threads.at(pid).tgid, pid);
  const PerfettoTrack& track = trace.thread(pid, pid);
  EXPECT_EQ(track.name, "domain 0");
  ASSERT_THAT(track.slices, SizeIs(2));
  EXPECT_EQ(track.slices[0].name, "request");
  EXPECT_EQ(track.slices[0].category, "user");
  EXPECT_EQ(track.slices[0].time, 2'000U);
  EXPECT_EQ(track.slices[0].end, 2'300U);
  EXPECT_EQ(track.slices[1].name, "minor");
  EXPECT_EQ(track.slices[1].category, "gc");
  EXPECT_EQ(track.slices[1].depth, 1U);
  EXPECT_THAT(track.slices[1].details, IsEmpty());
}

TEST_F(Perfetto, ARingWhoseThreadIsNotKnownIsAChildOfItsProcess) {
  draw(ring().add(2'000, EventKind::begin, phase_minor, 0, 3).add(2'100, EventKind::end, phase_minor, 0, 3));
  const PerfettoTrace trace = finish();
  const PerfettoTrack& track = trace.track("domain 3");
  EXPECT_EQ(track.tid, 0);
  EXPECT_EQ(track.pid, pid);
  EXPECT_EQ(track.rank, 3);
  EXPECT_TRUE(trace.tracks.at(track.parent).is_process);
  EXPECT_EQ(trace.tracks.at(track.parent).name, "server");
  EXPECT_THAT(track.slices, SizeIs(1));
}

TEST_F(Perfetto, CountersHaveUnitsAndATrackPerDomain) {
  const auto heap = static_cast<std::uint16_t>(*find_counter(Family::since_5_3, "major_heap_pool_words"));
  draw(ring()
           .add(2'000, EventKind::counter, counter_minor_allocated, 4096)
           .add(2'001, EventKind::counter, counter_minor_allocated, 8192)
           .add(2'002, EventKind::counter, counter_minor_allocated, 5, 1)
           .add(2'003, EventKind::counter, heap, 17)
           .add(2'004, EventKind::counter, 999, 1)
           .add(2'005, EventKind::counter, 998, 2));
  const PerfettoTrace trace = finish();
  const PerfettoTrack& first = trace.track("domain 0: minor_allocated");
  EXPECT_TRUE(first.is_counter);
  EXPECT_EQ(first.unit, "bytes");
  EXPECT_EQ(first.pid, pid);
  EXPECT_THAT(first.values, ElementsAre(Pair(2'000, 4096), Pair(2'001, 8192)));
  EXPECT_THAT(trace.track("domain 1: minor_allocated").values, ElementsAre(Pair(2'002, 5)));
  EXPECT_EQ(trace.track("domain 0: major_heap_pool_words").unit, "words");
  EXPECT_THAT(trace.track("domain 0: unknown counters").values, ElementsAre(Pair(2'004, 1), Pair(2'005, 2)));
  EXPECT_GT(trace.track("domain 1: minor_allocated").rank, first.rank);
}

TEST_F(Perfetto, PointsCarryTheirValues) {
  std::array<std::uint64_t, alloc_bucket_count> buckets{};
  buckets[0] = 7;
  buckets[19] = UINT64_MAX;
  draw(ring()
           .add(2'000, EventKind::user_unit, 1)
           .add(2'001, EventKind::user_int, 2, static_cast<std::uint64_t>(INT64_MIN))
           .add_bytes(2'002, EventKind::user_custom, std::string_view{"\x00\xffz", 3}, 1)
           .add(2'003, Lifecycle::fork_parent, 4243)
           .add_record(2'004, EventKind::alloc, buckets)
           .add(2'005, EventKind::user_unit, 77)
           .late());
  const auto instants = finish().thread(pid, pid).instants;
  ASSERT_THAT(instants, SizeIs(6));
  EXPECT_EQ(instants[0].name, "request");
  EXPECT_THAT(instants[0].details, IsEmpty());
  EXPECT_EQ(instants[1].details.at("value"), std::to_string(INT64_MIN));
  EXPECT_EQ(instants[2].details.at("bytes"), "00ff7a");
  EXPECT_EQ(instants[3].name, "fork_parent");
  EXPECT_EQ(instants[3].category, "lifecycle");
  EXPECT_EQ(instants[3].details.at("value"), "4243");
  EXPECT_EQ(instants[4].details.at("buckets"), "7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,18446744073709551615");
  EXPECT_EQ(instants[5].name, "#77");
  EXPECT_EQ(instants[5].details.at("late"), "true");
}

TEST_F(Perfetto, ProcessEventsTellWhatHappened) {
  const auto record = [&](std::uint64_t time, ProcessAction action, std::int32_t peer, std::int64_t detail) {
    draw(sched().add_record(time, EventKind::process, ProcessRecord{world_.process, peer, detail},
                            static_cast<std::uint16_t>(action)));
  };
  record(2'000, ProcessAction::fork, 12, 0);
  record(2'001, ProcessAction::ring, 0, 128);
  record(2'002, ProcessAction::exit, 0, 9);
  const auto instants = finish().thread(pid, pid).instants;
  ASSERT_THAT(instants, SizeIs(3));
  EXPECT_EQ(instants[0].name, "fork");
  EXPECT_EQ(instants[0].category, "process");
  EXPECT_EQ(instants[0].details.at("parent"), "12");
  EXPECT_EQ(instants[0].details.at("exe"), "/usr/bin/server");
  EXPECT_EQ(instants[0].details.at("version"), "5.3");
  EXPECT_EQ(instants[1].details.at("max_domains"), "128");
  EXPECT_EQ(instants[2].details.at("signal"), "9");
}

TEST_F(Perfetto, ArrowsGoFromTheLeaderOfAStopToThoseThatTakePart) {
  const std::uint16_t leader = phase("stw_leader"), handler = phase("stw_handler");
  draw(ring()
           .add(2'000, EventKind::counter, counter_minor_allocated, 0, 0)
           .add(2'001, EventKind::counter, counter_minor_allocated, 0, 1)
           .add(2'002, EventKind::counter, counter_minor_allocated, 0, 2)
           .add(2'100, EventKind::begin, leader, 0, 0)
           .add(2'110, EventKind::begin, handler, 0, 1)
           .add(2'120, EventKind::end, handler, 0, 1)
           .add(2'130, EventKind::end, leader, 0, 0));
  const PerfettoTrace trace = finish();
  const PerfettoSlice lead = trace.thread(pid, pid).slices.at(0);
  const PerfettoSlice follow = trace.track("domain 1").slices.at(0);
  EXPECT_THAT(lead.flows_out, SizeIs(2));
  ASSERT_THAT(follow.flows_in, SizeIs(1));
  EXPECT_THAT(lead.flows_out, testing::Contains(follow.flows_in[0]));
}

TEST_F(Perfetto, LossesAreMarksAndCloseWhatTheyCut) {
  draw(ring()
           .add(2'000, EventKind::begin, phase_minor)
           .add_record(3'000, EventKind::lost, Loss{.words = 12, .from_ns = 2'500, .to_ns = 3'000})
           .add(3'100, EventKind::end, phase_minor));
  const PerfettoTrace trace = finish();
  EXPECT_EQ(trace.losses, 1U);
  const PerfettoTrack& track = trace.thread(pid, pid);
  ASSERT_THAT(track.instants, SizeIs(1));
  EXPECT_EQ(track.instants[0].name, "lost");
  EXPECT_EQ(track.instants[0].category, "loss");
  EXPECT_EQ(track.instants[0].details.at("words"), "12");
  EXPECT_EQ(track.instants[0].details.at("from"), "2500");
  EXPECT_EQ(track.instants[0].details.at("to"), "3000");
  EXPECT_EQ(track.instants[0].details.at("reason"), "overwritten");
  ASSERT_THAT(track.slices, SizeIs(2));
  EXPECT_LE(track.slices[0].end, 2'500U);
  EXPECT_EQ(track.slices[0].details.at("end"), "lost");
  EXPECT_EQ(track.slices[1].details.at("begin"), "began before");
}

TEST_F(Perfetto, SpansOpenAtTheEndAreCut) {
  draw(ring().add(2'000, EventKind::begin, phase_minor));
  const auto slices = finish({.end_ns = 5'000}).thread(pid, pid).slices;
  ASSERT_THAT(slices, SizeIs(1));
  EXPECT_EQ(slices[0].end, 5'000U);
  EXPECT_EQ(slices[0].details.at("end"), "recording ended");
}

TEST_F(Perfetto, AReusedDomainHasATrackOfItsOwn) {
  draw(ring()
           .add(2'000, EventKind::begin, phase_minor, 0, 1)
           .add(2'100, EventKind::end, phase_minor, 0, 1)
           .add(2'200, Lifecycle::domain_terminate, 0, 1)
           .add(3'000, Lifecycle::domain_spawn, 0, 1)
           .add(3'100, EventKind::begin, phase_minor, 0, 1)
           .add(3'200, EventKind::end, phase_minor, 0, 1));
  const PerfettoTrace trace = finish();
  EXPECT_THAT(trace.track("domain 1").slices, SizeIs(1));
  EXPECT_THAT(trace.track("domain 1 #2").slices, SizeIs(1));
}

TEST_F(Perfetto, DroppedSchedulerEventsAreMarksOfTheRecording) {
  draw(sched().add_record(2'000, EventKind::lost, Loss{.words = 12, .from_ns = 2'000, .to_ns = 3'000},
                          static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream));
  const PerfettoEvent mark = finish().track("rtev-bpf").instants.at(1);
  EXPECT_EQ(mark.name, "scheduler events dropped");
  EXPECT_EQ(mark.category, "loss");
  EXPECT_EQ(mark.details.at("records"), "12");
  EXPECT_EQ(mark.details.at("from"), "2000");
  EXPECT_EQ(mark.details.at("to"), "3000");
}

TEST_F(Perfetto, MalformedEventsAreToldOf) {
  draw(sched().add_bytes(2'000, EventKind::sched_switch, "x"));
  EXPECT_EQ(finish().track("rtev-bpf").instants.at(1).name, "malformed event");
}

TEST_F(Perfetto, SummaryTellsWhatIsMissing) {
  world_.registry.process(world_.process).words.lost = 21;
  RunSummary summary{.end_ns = 9'000, .late = 3, .rings_missed = 1};
  summary.drops = {{"switch", 4}};
  summary.events[static_cast<std::size_t>(EventKind::counter)] = 5;
  const PerfettoEvent end = finish(summary).track("rtev-bpf").instants.at(1);
  EXPECT_EQ(end.name, "recording ends");
  EXPECT_EQ(end.time, 9'000U);
  EXPECT_EQ(end.details.at("dropped: switch"), "4");
  EXPECT_EQ(end.details.at("words lost"), "21");
  EXPECT_EQ(end.details.at("late"), "3");
  EXPECT_EQ(end.details.at("rings missed"), "1");
  EXPECT_EQ(end.details.at("events: counter"), "5");
}

}  // namespace
}  // namespace rtev::test
