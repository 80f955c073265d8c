// SPDX-License-Identifier: MIT
// Stop-the-world sections: who was last, why, and who waited.
#include <gmock/gmock.h>

#include "stream/stw_phases.hpp"
#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr, testing::Not, testing::SizeIs;

class PausesSections : public PausesTest {
 protected:
  PausesSections() {
    sees_all_switches();
    switches(100, enters(main_thread(), 0));
    switches(200, enters(other_thread(), 1));
    switches(300, leaves(other_thread(), LeftState::preempted, 1, nobody()));  // tells its domain
    switches(400, enters(other_thread(), 1));
  }

  /// Domain 0 asks at 1000, comes to the barrier at 1010 and sleeps there from 2000 until 2 ns after domain 1 came.
  void leader_waits_until(std::uint64_t arrival, const Thread& waker) {
    span(1'000, arrival + 500, phase_leader);
    span(1'010, arrival + 20, phase_start_barrier);
    switches(2'000, leaves(main_thread(), LeftState::sleeping, 0));
    wakes_up(arrival + 2, wakes(main_thread(), waker, 0));
    switches(arrival + 10, enters(main_thread(), 0));
  }
  /// Domain 1 comes at 30 ns before, through an interrupt or without one.
  void follower_arrives(std::uint64_t arrival, bool interrupted = true) {
    if (interrupted) begin(arrival - 20, phase_interrupt, 1);
    span(arrival - 10, arrival + 100, phase_handler, 1);
    span(arrival, arrival + 1, phase_start_barrier, 1);
    if (interrupted) end(arrival + 110, phase_interrupt, 1);
  }
  /// The pause of domain 0, which stands for both.
  const PauseDetails& only() {
    const PausesReport report = play();
    EXPECT_THAT(report.worst, SizeIs(1));
    EXPECT_EQ(report.counts.represented, report.counts.pauses - 1);
    return *report.worst.at(0);
  }
};

TEST_F(PausesSections, ABarrierThatWaitsForADescheduledDomain) {
  preempted(900, 8'900, competitor(), other_thread(), 1);
  leader_waits_until(9'000, other_thread());
  follower_arrives(9'000);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.domain.domain, 0);
  EXPECT_EQ(pause.duration_ns(), 8'500U);
  EXPECT_EQ(pause.time, (TimeSplit{.on_cpu = 1'490, .runnable = 8, .sleeping = 7'002}));
  EXPECT_EQ(pause.blocked.barrier, 7'002U);
  EXPECT_EQ(pause.blocked.section + pause.blocked.other, 0U);
  EXPECT_EQ(pause.start_wait_ns, 9'000U - 1'010 + 2);
  EXPECT_EQ(pause.start_wait_ns + pause.finish_wait_ns + pause.besides.total(), 8'500U);

  ASSERT_THAT(pause.sections, SizeIs(1));
  const StwSection& section = *pause.sections[0].section;
  EXPECT_TRUE(section.leader_seen);
  EXPECT_TRUE(section.has_barrier);
  EXPECT_EQ(section.begin_ns, 1'000U);
  ASSERT_THAT(section.domains, SizeIs(2));
  EXPECT_TRUE(section.domains[0].leads);
  EXPECT_EQ(section.domains[0].arrived_ns, 1'010U);
  const StwDomain& late = section.domains[1];
  EXPECT_EQ(section.last_to_arrive(), &late);
  EXPECT_EQ(late.domain, 1);
  EXPECT_EQ(late.tid, 4300);
  EXPECT_EQ(late.arrived_ns, 9'000U);
  EXPECT_EQ(late.before.time, (TimeSplit{.on_cpu = 100, .runnable = 7'900}));
  EXPECT_EQ(late.before.longest_wait.by->comm(), "hog");
  EXPECT_EQ(late.pause_begin_ns, 8'980U);
  EXPECT_EQ(late.pause_ns, 130U);
  EXPECT_EQ(late.pause_time, (TimeSplit{.on_cpu = 130}));

  const Blame found = blame_of(pause);
  EXPECT_EQ(found.cause, Cause::late_domain);
  EXPECT_EQ(found.why, Why::no_cpu);
  EXPECT_EQ(found.domain, &late);
  EXPECT_EQ(blame(),
            "waited 7.99µs of 8.50µs (94%) for domain 1 to stop: its thread 4300 could run but had no CPU for 7.90µs, "
            "while \"hog\" (pid 999) had CPU 1");
  const std::string text = pauses->report_text();
  EXPECT_THAT(text, HasSubstr("stop-the-world of 2 domains, requested at 0.000000999 s, all arrived after 8.00µs"));
  EXPECT_THAT(text, HasSubstr("no CPU 7.90µs behind \"hog\" (pid 999)  <- last"));
}

TEST_F(PausesSections, ADomainInABlockingSectionIsServedByItsBackupThread) {
  switches(500, leaves(other_thread(), LeftState::sleeping, 1));
  switches(600, enters(backup_thread(), 1));
  switches(700, leaves(backup_thread(), LeftState::sleeping, 1, competitor()));
  wakes_up(1'500, wakes(backup_thread(), main_thread(), 1));
  switches(8'000, enters(backup_thread(), 1, competitor()));
  leader_waits_until(8'050, backup_thread());
  follower_arrives(8'050, false);
  const PauseDetails& pause = only();
  const StwDomain& late = *pause.sections.at(0).section->last_to_arrive();
  EXPECT_EQ(late.tid, 4301);
  EXPECT_EQ(late.role, ThreadRole::backup);
  EXPECT_EQ(late.before.time, (TimeSplit{.on_cpu = 50, .runnable = 6'500, .sleeping = 500}));
  EXPECT_EQ(blame_of(pause).why, Why::backup_thread);
  EXPECT_EQ(blame(),
            "waited 7.04µs of 7.55µs (93%) for domain 1 to stop, which was in a blocking section: its backup thread "
            "4301 arrived after 7.05µs (500ns asleep, 6.50µs without a CPU, 50ns running), while \"hog\" (pid 999) had "
            "CPU 1");
  EXPECT_THAT(pauses->report_text(), HasSubstr("4301 backup"));
}

TEST_F(PausesSections, ALongWayToASafepoint) {
  leader_waits_until(9'000, other_thread());
  follower_arrives(9'000);
  const PauseDetails& pause = only();
  EXPECT_EQ(blame_of(pause).why, Why::ran);
  EXPECT_EQ(blame(),
            "waited 7.99µs of 8.50µs (94%) for domain 1 to stop, which ran for 8.00µs until it reached a safepoint");
}

TEST_F(PausesSections, NamesTheFunctionsThatADomainWasIn) {
  const StackFrame store{.kind = FrameKind::ocaml, .line = 42, .function = "Upload.store", .file = "upload.ml"};
  const StackFrame digest{.kind = FrameKind::ocaml, .function = "Digest.string"};
  const StackFrame glue{.kind = FrameKind::c, .function = "caml_c_call"};
  const StackFrame md5{.kind = FrameKind::c, .function = "caml_md5_string"};
  const StackFrame inner{.kind = FrameKind::c, .function = "caml_MD5Transform"};
  sampled(990, 4300, {store});  // before
  sampled(2'000, 4300, {inner, md5, glue, digest, store});
  sampled(3'000, 4300, {md5, glue, digest, store});
  sampled(4'000, 4300, {store});
  sampled(5'000, 4242, {store});  // another thread
  sampled(9'001, 4300, {store});  // after
  leader_waits_until(9'000, other_thread());
  follower_arrives(9'000);
  const PauseDetails& pause = only();
  EXPECT_THAT(pause.sections.at(0).section->last_to_arrive()->before.stacks, SizeIs(3));
  EXPECT_EQ(blame(),
            "waited 7.99µs of 8.50µs (94%) for domain 1 to stop, which ran for 8.00µs until it reached a safepoint: in "
            "Digest.string (caml_md5_string), called from Upload.store upload.ml:42 (2 of 3 samples)");
}

TEST_F(PausesSections, NamesWhatADomainSleptIn) {
  switches(900, leaves(other_thread(), LeftState::sleeping, 1));
  wakes_up(8'890, wakes(other_thread(), nobody(), 1));
  switches(8'900, enters(other_thread(), 1));
  sampled(8'900, 4300, {{.kind = FrameKind::ocaml, .line = 7, .function = "Db.query", .file = "db.ml"}},
          SampleKind::off_cpu, 8'000);
  leader_waits_until(9'000, other_thread());
  follower_arrives(9'000);
  const PauseDetails& pause = only();
  EXPECT_THAT(blame(), HasSubstr("its thread 4300 was blocked for 7.89µs: in Db.query db.ml:7"));
  const auto& seen = pause.sections.at(0).section->last_to_arrive()->before.stacks;
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].ns, 7'900U) << "of the sleep what lies in that time";
}

TEST_F(PausesSections, ADomainThatIsBlockedWithItsLock) {
  switches(900, leaves(other_thread(), LeftState::uninterruptible, 1));
  wakes_up(8'890, wakes(other_thread(), nobody(), 1));
  switches(8'900, enters(other_thread(), 1));
  leader_waits_until(9'000, other_thread());
  follower_arrives(9'000);
  only();
  EXPECT_THAT(blame(),
              HasSubstr("for domain 1 to stop: its thread 4300 was blocked for 7.89µs in the kernel, uninterrupt"));
}

TEST_F(PausesSections, ALeaderThatIsSlowToAsk) {
  span(1'000, 7'200, phase_leader);
  switches(1'100, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  span(1'200, 9'100, phase_interrupt, 1);
  span(1'210, 9'000, phase_handler, 1);
  span(1'220, 7'150, phase_start_barrier, 1);
  switches(7'000, enters(main_thread(), 0, competitor()));
  span(7'100, 7'101, phase_start_barrier);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.domain.domain, 1);  // the longer one
  const Blame found = blame_of(pause);
  EXPECT_EQ(found.cause, Cause::late_domain);
  EXPECT_EQ(found.domain->domain, 0);
  EXPECT_EQ(found.why, Why::no_cpu);
  EXPECT_EQ(pause.start_wait_ns, 7'100U - 1'220);
}

TEST_F(PausesSections, TheLeaderWaitsForTheSlowOne) {
  span(1'000, 9'300, phase_leader);
  span(1'100, 1'200, phase_minor);
  span(1'210, 9'150, phase_minor_barrier);
  span(1'020, 9'110, phase_handler, 1);
  span(1'030, 9'100, phase_minor, 1);
  preempted(1'300, 9'000, competitor(), other_thread(), 1);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.finish_wait_ns, 9'100U - 1'210);
  const Blame found = blame_of(pause);
  EXPECT_EQ(found.cause, Cause::slow_domain);
  EXPECT_EQ(found.why, Why::no_cpu);
  EXPECT_EQ(blame(),
            "waited 7.89µs of 8.30µs (95%) for domain 1 to end its part of the minor collection: its thread 4300 could "
            "run but had no CPU for 7.70µs, while \"hog\" (pid 999) had CPU 1");
  EXPECT_THAT(pauses->report_text(), HasSubstr("without waiting for each other"));
}

TEST_F(PausesSections, OneThatIsInterruptedBeforeItSaysThatItEndedIsWaitedForWithCare) {
  span(1'000, 8'200, phase_leader);
  span(1'100, 1'200, phase_minor);
  span(1'210, 8'100, phase_minor_barrier);
  span(1'020, 9'010, phase_handler, 1);
  span(1'030, 9'000, phase_minor, 1);
  // Domain 1 came to the barrier, but its minor collection ends after the leader has gone on: the leader itself had no
  // cpu for a while.
  preempted(3'000, 8'000);
  const PauseDetails& pause = only();
  const StwSection& section = *pause.sections.at(0).section;
  EXPECT_EQ(section.domains.at(0).minor_passed_ns, 8'100U);
  EXPECT_EQ(section.domains.at(0).pause_time, (TimeSplit{.on_cpu = 2'200, .runnable = 5'000}));
  EXPECT_EQ(section.last_to_end_minor()->domain, 1);
}

TEST_F(PausesSections, SectionsOfOneAfterTheOtherAreApart) {
  for (const std::uint64_t begin_ns : {10'000U, 20'000U, 30'000U}) {
    span(begin_ns, begin_ns + 60, phase_leader);
    span(begin_ns + 10, begin_ns + 52, phase_start_barrier);
    span(begin_ns + 40, begin_ns + 70, phase_handler, 1);
    span(begin_ns + 50, begin_ns + 51, phase_start_barrier, 1);
  }
  const PausesReport report = play();
  EXPECT_THAT(report.worst, SizeIs(3));
  EXPECT_EQ(report.counts.represented, 3U);
  for (const PauseDetails* pause : report.worst) {
    EXPECT_THAT(pause->sections.at(0).section->domains, SizeIs(2));
    EXPECT_EQ(pause->start_wait_ns, 40U);
  }
}

TEST_F(PausesSections, OneLongPauseStandsForAllItsSections) {
  span(1'000, 60'000, phase_major);
  for (const std::uint64_t begin_ns : {10'000U, 20'000U}) {
    span(begin_ns, begin_ns + 60, phase_leader);
    span(begin_ns + 40, begin_ns + 9'000, phase_handler, 1);
  }
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.domain.domain, 0);
  EXPECT_EQ(pause.section_count, 2U);
  for (const PauseSection& part : pause.sections) EXPECT_EQ(part.section->domains.at(1).pause_ns, 8'960U);
}

TEST_F(PausesSections, WhatALongerOneDoesNotShowIsListedByItself) {
  // Domains 0, 1 and 2 in a section; then 2, 3 and 4 in another one, in which domain 2 spends less of its pause.
  span(10'000, 19'000, phase_leader);
  span(10'100, 29'000, phase_handler, 1);
  begin(10'200, phase_major, 2);
  span(10'300, 36'000, phase_handler, 2);
  begin(36'500, phase_leader, 3);
  span(36'600, 37'600, phase_handler, 2);
  span(36'700, 50'000, phase_handler, 4);
  end(38'000, phase_major, 2);   // 27.8: shows both sections
  end(64'500, phase_leader, 3);  // 28.0: shows the second section only
  const PausesReport report = play();
  std::vector<std::uint64_t> listed;
  for (const PauseDetails* const pause : report.worst) listed.push_back(pause->duration_ns());
  EXPECT_EQ(listed, (std::vector<std::uint64_t>{28'000, 27'800}));
  EXPECT_EQ(report.counts.pauses, 5U);
  EXPECT_EQ(report.counts.represented, 3U);
  EXPECT_THAT(pauses->report_text(), testing::StartsWith("5 pauses of server/4242, in "));
  EXPECT_THAT(pauses->report_text(), HasSubstr("\n3 more pauses appear only in the stop-the-world tables below\n"));
}

TEST_F(PausesSections, WhatOneShowedComesBackWhenALongerOneTakesItsPlace) {
  // Domain 1 shows domain 0's section; its own longest one is shown by domain 2, which does not show that of domain 0.
  begin(10'000, phase_leader);
  begin(10'100, phase_major, 1);
  span(10'200, 15'100, phase_handler, 1);
  end(15'000, phase_leader);  // 5.0
  begin(15'200, phase_leader, 2);
  span(15'300, 30'000, phase_handler, 1);
  end(30'100, phase_major, 1);   // 20.0
  end(60'200, phase_leader, 2);  // 45.0
  const PausesReport report = play();
  std::vector<std::uint64_t> listed;
  for (const PauseDetails* const pause : report.worst) listed.push_back(pause->duration_ns());
  EXPECT_EQ(listed, (std::vector<std::uint64_t>{45'000, 5'000}));
  EXPECT_EQ(report.counts.represented, 1U);
}

TEST_F(PausesSections, TimeWithoutACpuIsToldOfTheWholePauseWhereItsCompetitorsAre) {
  span(1'000, 12'100, phase_leader);
  span(1'010, 12'010, phase_start_barrier);
  switches(1'100, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  follower_arrives(4'000);
  switches(12'000, enters(main_thread(), 0, competitor()));
  only();
  EXPECT_EQ(
      blame(),
      "its thread 4242 could run but had no CPU for 10.9µs of 11.1µs (98%), 8.00µs of it outside its waits for other "
      "domains: \"hog\" (pid 999) had CPU 0");
}

TEST_F(PausesSections, AHandlerWithoutALeaderStartsASectionOfItsOwn) {
  follower_arrives(9'000);
  const PauseDetails& pause = only();
  const StwSection& section = *pause.sections.at(0).section;
  EXPECT_FALSE(section.leader_seen);
  EXPECT_EQ(section.last_to_arrive(), nullptr);  // of one domain
  EXPECT_EQ(section.domains.at(0).before.time, TimeSplit{});
}

TEST_F(PausesSections, AHandlerThatTakesPartTwiceIsInAnotherSection) {
  leader_waits_until(9'000, other_thread());
  follower_arrives(9'000);
  follower_arrives(50'000);  // its leader was not seen
  const PausesReport report = play();
  ASSERT_THAT(report.worst, SizeIs(2));
  EXPECT_THAT(report.worst[0]->sections.at(0).section->domains, SizeIs(2));
  EXPECT_THAT(report.worst[1]->sections.at(0).section->domains, SizeIs(1));
}

TEST_F(PausesSections, OfOneDomainNoTableIsShown) {
  span(1'000, 2'000, phase_leader);
  span(1'100, 1'900, phase_minor);
  only();
  EXPECT_THAT(pauses->report_text(), Not(HasSubstr("stop-the-world of")));
}

TEST(PausesSectionsBefore53, TheLeaderWaitsWithoutABarrierOfItsOwn) {
  ProcessInfo info = World::default_info();
  info.version = "5.1";
  info.family = Family::before_5_3;
  World world(info);
  const StwPhases& phases = StwPhases::of(Family::before_5_3);
  Events events(world.slot);
  events.add_record(100, EventKind::sched_switch, enters(main_thread(), 0))
      .add(1'000, EventKind::begin, phases.leader)
      .add(2'000, EventKind::begin, phases.handler, 0, 1)
      .add(2'010, EventKind::begin, phases.start_barrier, 0, 1)
      .add(5'000, EventKind::begin, phases.handler, 0, 2)
      .add(5'010, EventKind::begin, phases.start_barrier, 0, 2)
      .add(5'020, EventKind::end, phases.start_barrier, 0, 1)
      .add(5'030, EventKind::begin, phases.minor)
      .add(5'040, EventKind::end, phases.start_barrier, 0, 2)
      .add(5'050, EventKind::end, phases.minor)
      .add(6'000, EventKind::end, phases.leader)
      .add(6'010, EventKind::end, phases.handler, 0, 1)
      .add(6'020, EventKind::end, phases.handler, 0, 2);
  Pauses pauses({});
  pauses.consume(events.batch(), world.registry);
  pauses.summary({}, world.registry);
  const PausesReport report = pauses.report();
  ASSERT_THAT(report.worst, SizeIs(1));
  EXPECT_EQ(report.worst[0]->start_wait_ns, 5'010U - 1'000);
  EXPECT_THAT(report.worst[0]->sections.at(0).section->domains, SizeIs(3));
  EXPECT_EQ(blame_of(*report.worst[0]).domain->domain, 2);
}

}  // namespace
}  // namespace rtev::test
