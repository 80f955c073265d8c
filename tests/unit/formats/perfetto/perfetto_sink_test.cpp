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

TEST_F(Perfetto, HeaderTellsClocksAndKernel) {
  const PerfettoTrace trace = finish();
  EXPECT_EQ(trace.kernel, "6.18.0-1");
  EXPECT_THAT(trace.clocks, ElementsAre(Pair(1, 1'700'000'000'000'000'000U), Pair(3, 1'000), Pair(6, 1'000)));
  const auto& instants = trace.track("rtev-bpf").instants;
  ASSERT_THAT(instants, SizeIs(2));
  EXPECT_EQ(text(instants[0]),
            "1000 recording starts recording command=rtev-bpf record host=box kernel=6.18.0-1 rtev-bpf=0.1");
}

TEST_F(Perfetto, SpansLieOnTheThreadUnderItsRealIds) {
  draw(ring().add("2000 [1 2100 >minor 2200 <minor 2300 ]1"));
  const PerfettoTrace trace = finish();
  EXPECT_EQ(trace.processes.at(pid), "server");
  EXPECT_EQ(trace.threads.at(pid).tgid, pid);
  const PerfettoTrack& track = trace.thread(pid, pid);
  EXPECT_EQ(track.name, "domain 0");
  EXPECT_THAT(texts(track.slices), ElementsAre("2000 request user -2300", " 2100 minor gc -2200"));
}

TEST_F(Perfetto, ARingWhoseThreadIsNotKnownIsAChildOfItsProcess) {
  draw(ring().add("2000 >minor@3 2100 <minor@3"));
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
  EXPECT_THAT(texts(finish().thread(pid, pid).instants),
              ElementsAre("2000 request user", "2001 query user value=-9223372036854775808",
                          "2002 request user bytes=00ff7a", "2003 fork_parent lifecycle value=4243",
                          "2004 alloc alloc buckets=7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,18446744073709551615",
                          "2005 #77 user late=true"));
}

TEST_F(Perfetto, ProcessEventsTellWhatHappened) {
  const auto record = [&](std::uint64_t time, ProcessAction action, std::int32_t peer, std::int64_t detail) {
    draw(sched().add_record(time, EventKind::process, ProcessRecord{world_.process, peer, detail},
                            static_cast<std::uint16_t>(action)));
  };
  record(2'000, ProcessAction::fork, 12, 0);
  record(2'001, ProcessAction::ring, 0, 128);
  record(2'002, ProcessAction::exit, 0, 9);
  EXPECT_THAT(texts(finish().thread(pid, pid).instants),
              ElementsAre("2000 fork process exe=/usr/bin/server family=5.3+ ns_pid=7 parent=12 runtime=ocaml "
                          "version=5.3",
                          "2001 ring process max_domains=128 path=/run/4242.events", "2002 exit process signal=9"));
}

TEST_F(Perfetto, ArrowsGoFromTheLeaderOfAStopToThoseThatTakePart) {
  draw(ring()
           .add(2'000, EventKind::counter, counter_minor_allocated, 0, 0)
           .add(2'001, EventKind::counter, counter_minor_allocated, 0, 1)
           .add(2'002, EventKind::counter, counter_minor_allocated, 0, 2)
           .add("2100 >stw_leader 2110 >stw_handler@1 2120 <stw_handler@1 2130 <stw_leader"));
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
  EXPECT_THAT(texts(track.instants),
              ElementsAre("3000 lost loss domain=0 from=2500 reason=overwritten to=3000 words=12"));
  EXPECT_THAT(texts(track.slices),
              ElementsAre("2000 minor gc end=lost -2500", "2999 minor gc begin=began before -3100"));
}

TEST_F(Perfetto, SpansOpenAtTheEndAreCut) {
  draw(ring().add(2'000, EventKind::begin, phase_minor));
  EXPECT_THAT(texts(finish({.end_ns = 5'000}).thread(pid, pid).slices),
              ElementsAre("2000 minor gc end=recording ended -5000"));
}

TEST_F(Perfetto, AReusedDomainHasATrackOfItsOwn) {
  draw(
      ring().add("2000 >minor@1 2100 <minor@1 2200 !domain_terminate@1 3000 !domain_spawn@1 3100 >minor@1 "
                 "3200 <minor@1"));
  const PerfettoTrace trace = finish();
  EXPECT_THAT(trace.track("domain 1").slices, SizeIs(1));
  EXPECT_THAT(trace.track("domain 1 #2").slices, SizeIs(1));
}

TEST_F(Perfetto, DroppedSchedulerEventsAreMarksOfTheRecording) {
  draw(sched().add_record(2'000, EventKind::lost, Loss{.words = 12, .from_ns = 2'000, .to_ns = 3'000},
                          static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream));
  EXPECT_EQ(text(finish().track("rtev-bpf").instants.at(1)),
            "2000 scheduler events dropped loss from=2000 records=12 to=3000");
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
  EXPECT_EQ(text(finish(summary).track("rtev-bpf").instants.at(1)),
            "9000 recording ends recording dropped: switch=4 events: counter=5 forced=0 late=3 rings missed=1 "
            "words lost=21");
}

}  // namespace
}  // namespace rtev::test
