// SPDX-License-Identifier: MIT
// What is not known is said: lost words, missing ends, domains that end.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

constexpr auto lost = static_cast<std::size_t>(Unfinished::lost), no_end = static_cast<std::size_t>(Unfinished::no_end),
               ended = static_cast<std::size_t>(Unfinished::ended);

class PausesLosses : public PausesTest {
 protected:
  PausesLosses() {
    switches(100, enters(main_thread(), 0));
    switches(200, enters(other_thread(), 1));
  }
};

TEST_F(PausesLosses, APauseThatWordsWereLostInHasNoLength) {
  span(1'000, 9'000, phase_major);
  loses(2'000, 7'000, 0);
  span(10'000, 10'500, phase_major);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.begin_ns, 10'000U);
  EXPECT_EQ(counts().unfinished[lost], 1U);
  EXPECT_EQ(counts().lost_words, 100U);
  EXPECT_EQ(counts().ends_without_begin, 1U);
  ASSERT_THAT(pauses->report().unfinished, SizeIs(1));
  EXPECT_EQ(pauses->report().unfinished[0].begin_ns, 1'000U);
  EXPECT_EQ(pauses->report().unfinished[0].until_ns, 7'000U);
  EXPECT_EQ(pauses->report().unfinished[0].comm, "server");
  const std::string text = pauses->report_text();
  EXPECT_THAT(text, HasSubstr("warning: 100 ring words were lost; 1 pause is incomplete, others may be missing"));
  EXPECT_THAT(text, HasSubstr("at most     6.00µs  server/4242 domain 0, major, at 0.000000999 s: events of "
                              "its domain were lost during it"));
}

TEST_F(PausesLosses, APauseThatWasNotProbedToItsEndHasNoLength) {
  span(1'000, 9'000, phase_major);
  loses(2'000, 7'000, 0, 0);
  span(10'000, 10'500, phase_major);
  const PausesReport report = play();
  EXPECT_THAT(report.worst, SizeIs(1));
  EXPECT_EQ(report.counts.unfinished[lost], 1U);
  EXPECT_EQ(report.counts.lost_words, 0U);
  EXPECT_EQ(report.counts.unprobed, 1U);
  const auto json_counts = nlohmann::json::parse(pauses->report_json())["counts"];
  EXPECT_EQ(json_counts["unprobed"], 1);
  EXPECT_EQ(json_counts["lost_words"], nullptr);
  EXPECT_THAT(pauses->report_text(),
              HasSubstr("warning: tracing by probes paused 1 time; 1 pause is incomplete, others may be missing"));
}

TEST_F(PausesLosses, BothKindsOfLossesAreSaid) {
  loses(2'000, 7'000, 0, 100);
  loses(8'000, 9'000, 0, 0);
  play();
  EXPECT_THAT(pauses->report_text(),
              HasSubstr("warning: 100 ring words were lost and tracing by probes paused 1 time; "));
}

TEST_F(PausesLosses, LossesOfAnotherDomainDuringASectionAreSaid) {
  span(1'000, 9'000, phase_leader);
  span(1'010, 8'010, phase_start_barrier);
  loses(900, 8'000, 1);
  const PauseDetails& pause = only();
  EXPECT_THAT(pause.lost_domains, ElementsAre(1));
  EXPECT_THAT(pause.sections.at(0).section->lost_domains, ElementsAre(1));
  EXPECT_EQ(pause.time.total(), 8'000U);
  EXPECT_THAT(pauses->report_text(), HasSubstr("warning: events of other domains were lost: 1\n"));
}

TEST_F(PausesLosses, LossesThatShowAfterThePauseAreSaidOfItToo) {
  span(1'000, 9'000, phase_leader);
  span(1'010, 8'010, phase_start_barrier);
  span(2'000, 8'100, phase_handler, 2);
  span(2'010, 8'000, phase_start_barrier, 2);
  loses(900, 20'000, 1);  // domain 1 came last, but that was lost
  const PauseDetails& pause = only();
  EXPECT_THAT(pause.lost_domains, ElementsAre(1));
  EXPECT_THAT(pause.sections.at(0).section->lost_domains, ElementsAre(1));
  EXPECT_THAT(pauses->report_text(), HasSubstr("warning: events of domains were lost: 1\n"));
}

TEST_F(PausesLosses, WhatThreadsDidWhereSchedulerEventsWereDroppedIsNotKnown) {
  span(1'000, 3'500, phase_major);
  drops(2'000, 3'000, 7);
  preempted(2'100, 2'900);
  span(10'000, 10'400, phase_major);
  preempted(10'100, 10'200);
  const PausesReport report = play();
  ASSERT_THAT(report.worst, SizeIs(2));
  EXPECT_EQ(report.worst[0]->time, (TimeSplit{.on_cpu = 1'000, .unknown = 1'500}));
  EXPECT_EQ(report.worst[1]->time.total(), 400U);
  EXPECT_EQ(report.worst[1]->time.runnable, 100U);
  EXPECT_EQ(report.worst[1]->time.on_cpu, 200U);
  EXPECT_EQ(report.counts.scheduler_dropped, 7U) << "though no summary says so";
  EXPECT_EQ(report.counts.scheduler_contradictions, 0U);
  for (const PauseDetails* const pause : report.worst)
    EXPECT_EQ(pause->unknown_as, PauseDetails::UnknownAs::lost) << "until the next event of the thread";
  EXPECT_THAT(blame(), HasSubstr("unknown for 1.50µs of 2.50µs (60%): scheduler events were lost"));
  const auto json = nlohmann::json::parse(pauses->report_json());
  EXPECT_EQ(json["pauses"][0]["blame"]["why"], "lost_events");
  EXPECT_EQ(json["groups"][0]["why"], "lost_events");
}

TEST_F(PausesLosses, APauseThatGoesOnAtTheEndIsNotCounted) {
  pauses = std::make_unique<Pauses>(PausesOptions{});
  pauses->header({.version = "1.2", .start_ns = 1});
  pauses->consume(Events(world.slot).add(1'000, EventKind::begin, phase_major).batch(), world.registry);
  pauses->summary({.end_ns = 5'000}, world.registry);
  EXPECT_THAT(pauses->report_text(), HasSubstr("1 pause was of unknown length and is not counted here\n"));
}

TEST_F(PausesLosses, OfLatePausesItIsSaidThatTheyCameLate) {
  pauses = std::make_unique<Pauses>(PausesOptions{});
  pauses->header({.version = "1.2", .start_ns = 1});
  Events events(world.slot);
  events.add_record(20'000, EventKind::sched_switch, leaves(main_thread(), LeftState::preempted))
      .add_record(20'500, EventKind::sched_switch, enters(main_thread()))
      .add(15'000, EventKind::begin, phase_major)
      .late()
      .add(18'000, EventKind::end, phase_major)
      .late();
  pauses->consume(events.batch(), world.registry);
  pauses->summary({}, world.registry);
  EXPECT_THAT(blame(), HasSubstr("unknown for 3.00µs of 3.00µs (100%): runtime events came late"));
  EXPECT_THAT(pauses->report_text(), HasSubstr("1 × unknown (3.00µs): runtime events came late"));
}

TEST_F(PausesLosses, LossesAtOtherTimesDoNotMatter) {
  loses(100, 500, 1);
  span(1'000, 3'000, phase_leader);
  span(1'010, 2'020, phase_start_barrier);
  span(2'000, 2'500, phase_handler, 1);
  span(2'010, 2'011, phase_start_barrier, 1);
  loses(5'000, 9'000, 1);
  const PauseDetails& pause = only();
  EXPECT_THAT(pause.lost_domains, IsEmpty());
  EXPECT_THAT(pause.sections.at(0).section->lost_domains, IsEmpty());
}

TEST_F(PausesLosses, APauseWhoseEndIsMissingLastedAtMost) {
  begin(1'000, phase_leader);
  span(5'000, 6'000, phase_leader);  // cannot begin again before it has ended
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.duration_ns(), 1'000U);
  EXPECT_EQ(counts().unfinished[no_end], 1U);
  EXPECT_THAT(pauses->report_text(), HasSubstr("at most     4.00µs"));
  EXPECT_THAT(pauses->report_text(), HasSubstr("its end was not seen"));
}

TEST_F(PausesLosses, APauseThatLastsAtTheEndLastedAtLeast) {
  begin(1'000, phase_leader);
  const PausesReport report = play({}, {.end_ns = 51'000});
  EXPECT_THAT(report.worst, IsEmpty());
  EXPECT_EQ(report.counts.unfinished[ended], 1U);
  EXPECT_THAT(pauses->report_text(), HasSubstr("at least    50.0µs"));
}

TEST_F(PausesLosses, AProcessThatEndsTakesItsPausesAlong) {
  begin(1'000, phase_leader);
  begin(1'100, phase_handler, 1);
  exits(5'000);
  const PausesReport report = play();
  EXPECT_THAT(report.worst, IsEmpty());
  EXPECT_EQ(report.counts.unfinished[ended], 2U);
}

TEST_F(PausesLosses, DomainsThatHaveANumberOneAfterTheOtherAreApart) {
  lifecycle(500, Lifecycle::domain_spawn, 1);
  span(1'000, 2'000, phase_major, 1);
  begin(2'500, phase_major, 1);
  lifecycle(3'000, Lifecycle::domain_terminate, 1);
  lifecycle(4'000, Lifecycle::domain_spawn, 1);
  span(5'000, 9'000, phase_major, 1);
  const PausesReport report = play();
  ASSERT_THAT(report.worst, SizeIs(2));
  EXPECT_EQ(report.worst[0]->domain.incarnation, 2U);
  EXPECT_EQ(report.worst[0]->duration_ns(), 4'000U);
  EXPECT_EQ(report.worst[1]->domain.incarnation, 1U);
  EXPECT_EQ(report.counts.unfinished[ended], 1U);
  EXPECT_THAT(pauses->report_text(), HasSubstr("domain 1 #2"));
}

TEST_F(PausesLosses, ASliceInASliceIsNoMissingEnd) {
  // While it marks, a domain serves a stop-the-world section and does the slice that has become due.
  span(1'000, 5'000, phase_major);
  span(1'100, 4'000, phase_slice);
  span(2'000, 3'000, phase_major);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.duration_ns(), 4'000U);
  EXPECT_EQ(counts().unfinished[no_end], 0U);
}

TEST_F(PausesLosses, APhaseInsideWithoutAnEndEndsWithTheOneAroundIt) {
  span(1'000, 5'000, phase_leader);
  begin(2'000, phase_start_barrier);
  const PauseDetails& pause = only();
  const auto nodes = pause.phases.nodes();
  ASSERT_THAT(nodes, SizeIs(2));
  EXPECT_EQ(nodes[1].total_ns, 3'000U);
  EXPECT_EQ(nodes[0].own_ns, 1'000U);
  EXPECT_EQ(pause.start_wait_ns, 0U);
}

TEST_F(PausesTest, WaitsSumUpToTheRunnableTimeAfterAContradiction) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  preempted(2'000, 3'000);
  switches(4'000, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  span(6'000, 9'000, phase_leader);  // asks what the thread has done: it waits for a cpu
  // It leaves a cpu that it did not come to: that it came is missing, and when is not known.
  switches(8'000, leaves(main_thread(), LeftState::sleeping, 1));
  const PauseDetails& pause = only();
  EXPECT_EQ(counts().scheduler_contradictions, 1U);
  EXPECT_EQ(pause.time, (TimeSplit{.on_cpu = 2'000, .runnable = 3'000, .sleeping = 2'000, .unknown = 2'000}));
  ASSERT_THAT(pause.scheduling.competitors(), SizeIs(1));
  EXPECT_EQ(pause.scheduling.competitors()[0].wait.ns, 1'000U);
  EXPECT_EQ(pause.scheduling.unknown_competitors_ns(), 2'000U);
  EXPECT_THAT(pauses->report_text(), HasSubstr("    no CPU    for 2.00µs behind unknown threads\n"));
  EXPECT_THAT(pauses->report_text(),
              HasSubstr("warning: what threads did is unknown for 2.00µs of 9.00µs in pauses (22%): 1 gap in the"));
}

TEST_F(PausesTest, WaitsDoNotExceedWhatWasToldBefore) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  switches(2'000, leaves(main_thread(), LeftState::sleeping, 0, competitor()));
  span(4'000, 9'000, phase_leader);                     // asks what the thread has done: it sleeps
  wakes_up(1'900, wakes(main_thread(), competitor()));  // but was woken on its way off the cpu
  switches(6'000, enters(main_thread(), 0, competitor()));
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.time, (TimeSplit{.on_cpu = 5'000, .runnable = 2'000, .sleeping = 2'000}));
  ASSERT_THAT(pause.scheduling.competitors(), SizeIs(1));
  EXPECT_EQ(pause.scheduling.competitors()[0].wait.ns, 2'000U);
  EXPECT_EQ(pause.scheduling.unknown_competitors_ns(), 0U);
}

TEST_F(PausesTest, ARecordingWithoutItsEndDoesNotTellWhatARingHadOverwritten) {
  world.registry.process(world.process).words.before_attach = 1'234;
  span(1'000, 2'000, phase_major);
  EXPECT_EQ(play({}, {.complete = false}).counts.words_before, 0U);
}

TEST_F(PausesTest, OfAProgramThatWasTracedThePastIsNotAskedFor) {
  world.registry.process(world.process).words.before_attach = 1'234;
  span(1'000, 2'000, phase_major);
  EXPECT_EQ(play().counts.words_before, 0U) << "also where --events left processes out";
}

TEST_F(PausesTest, ARingThatOverwroteItsPastIsSaidToHave) {
  world.registry.process(world.process).words.before_attach = 1'234;
  span(1'000, 2'000, phase_major);
  const PausesReport report = play({}, {.whole_ring = true});
  EXPECT_EQ(report.counts.words_before, 1'234U);
  EXPECT_THAT(pauses->report_text(), testing::StartsWith("at least 1 pause of server/4242, in "));
  EXPECT_THAT(pauses->report_text(), testing::HasSubstr("warning: 1,234 words were overwritten before the ring"));
}

}  // namespace
}  // namespace rtev::test
