// SPDX-License-Identifier: MIT
// Pauses of one domain: what its thread did, and what is blamed.
#include <gmock/gmock.h>

#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

using testing::AllOf, testing::ElementsAre, testing::EndsWith, testing::HasSubstr, testing::SizeIs;

class PausesBlame : public PausesTest {
 protected:
  PausesBlame() {
    sees_all_switches();
    switches(100, enters(main_thread(), 0));
  }
};

TEST_F(PausesBlame, WorkIsBlamedOnItsBusiestPhase) {
  span(1'000, 9'000, phase_major);
  span(1'500, 8'500, phase_slice);
  switches(20'000, leaves(main_thread(), LeftState::sleeping));
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.domain.pid, 4242);
  EXPECT_EQ(pause.comm, "server");
  EXPECT_EQ(pause.tid, 4242);
  EXPECT_EQ(pause.role, ThreadRole::mutator);
  EXPECT_EQ(pause.begin_ns, 1'000U);
  EXPECT_EQ(pause.duration_ns(), 8'000U);
  EXPECT_EQ(pause.time, (TimeSplit{.on_cpu = 8'000}));
  EXPECT_EQ(blame_of(pause).cause, Cause::work);
  EXPECT_EQ(blame(),
            "worked on a CPU for 8.00µs of 8.00µs (100%), most of the pause in major_slice (7.00µs without the phases "
            "inside)");
}

TEST_F(PausesBlame, TheFiberThatRanIsNamed) {
  fiber(500, 7);
  span(1'000, 9'000, phase_major);
  EXPECT_EQ(only().task, "fiber 7");
  EXPECT_THAT(blame(), EndsWith("; its domain ran fiber 7"));
}

TEST_F(PausesBlame, AfterALossTheFiberIsUnknown) {
  fiber(500, 7);
  loses(600, 700, 0);
  span(1'000, 9'000, phase_interrupt);
  EXPECT_EQ(only().task, "");
}

TEST_F(PausesBlame, ALateDomainIsBlamedWithItsFiber) {
  switches(100, enters(other_thread(), 1));
  fiber(200, 7);
  fiber(300, 12, 1);
  span(1'000, 9'100, phase_leader);
  span(1'010, 9'000, phase_start_barrier);
  span(8'900, 9'100, phase_handler, 1);
  span(8'910, 9'000, phase_start_barrier, 1);
  play();
  EXPECT_THAT(blame(),
              HasSubstr("for domain 1 to stop, which ran for 7.91µs until it reached a safepoint, in fiber 12"));
}

TEST_F(PausesBlame, APreemptedPauseIsBlamedOnTheCompetitor) {
  span(1'000, 11'000, phase_major);
  preempted(3'000, 9'000);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.time, (TimeSplit{.on_cpu = 4'000, .runnable = 6'000}));
  EXPECT_EQ(pause.besides, pause.time);
  EXPECT_EQ(pause.scheduling.preempted(), 1U);
  EXPECT_EQ(pause.scheduling.migrations(), 0U);
  ASSERT_THAT(pause.scheduling.competitors(), SizeIs(1));
  const SchedulingDetail::CpuCompetitor competitor = pause.scheduling.competitors().front();
  EXPECT_EQ(competitor.wait.ns, 6'000U);
  EXPECT_EQ(competitor.wait.cpu, 0);
  EXPECT_EQ(competitor.wait.had, CpuWait::Had::throughout);
  EXPECT_EQ(competitor.wait.by->tid, 999);
  EXPECT_EQ(blame(),
            "its thread 4242 could run but had no CPU for 6.00µs of 10.0µs (60%): \"hog\" (pid 999) had CPU 0");
}

TEST_F(PausesBlame, EachCompetitorIsToldWithItsTime) {
  span(1'000, 10'000, phase_major);
  switches(2'000, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  const Thread second = a_thread(888, 889, -1, "second", false);
  switches(7'000, {.cpu = 0, .state = LeftState::preempted, .prev = competitor(), .next = second});
  switches(8'000, enters(main_thread(), 0, second));
  preempted(8'100, 9'000, second);
  const auto competitors = only().scheduling.competitors();
  ASSERT_THAT(competitors, SizeIs(2));
  EXPECT_EQ(competitors[0].wait.by->comm(), "hog");
  EXPECT_EQ(competitors[0].wait.ns, 5'000U);
  EXPECT_EQ(competitors[1].wait.by->comm(), "second");
  EXPECT_EQ(competitors[1].wait.ns, 1'900U);
  EXPECT_EQ(competitors[1].times, 2U);
  EXPECT_THAT(blame(), HasSubstr(": for 5.00µs of it \"hog\" (pid 999) had CPU 0; other threads had it for the rest"));
  EXPECT_THAT(pauses->report_text(),
              HasSubstr("no CPU    for 1.90µs, 2 times, CPU 0 behind \"second\" (pid 888, thread 889)"));
}

TEST_F(PausesBlame, CompetitorsThatWereNotSeenAreNotMadeUp) {
  span(1'000, 10'000, phase_major);
  switches(2'000, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  // The hog's end on the cpu was not traced: another one leaves it.
  switches(9'000, enters(main_thread(), 0, a_thread(888, 888, -1, "second", false)));
  EXPECT_EQ(only().scheduling.competitors().front().wait.had, CpuWait::Had::first);
  EXPECT_THAT(blame(), EndsWith(": others had CPU 0")) << "no hint to trace all switches, as they were";
}

TEST_F(PausesTest, WithoutSwitchesBetweenOthersNobodyIsBlamedForAllOfAWait) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  preempted(2'000, 9'000);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.scheduling.competitors().at(0).wait.had, CpuWait::Had::ends);
  EXPECT_EQ(blame(),
            "its thread 4242 could run but had no CPU for 7.00µs of 9.00µs (78%): others had CPU 0 (--sched all "
            "shows all of them)");
  EXPECT_THAT(pauses->report_text(), HasSubstr("behind other threads\n"));
}

TEST_F(PausesTest, WhoTookACpuFirstIsNotBlamed) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  switches(2'000, leaves(main_thread(), LeftState::preempted, 0, a_thread(15, 15, -1, "rcu_preempt", false)));
  switches(9'000, enters(main_thread(), 0, competitor()));
  EXPECT_EQ(only().scheduling.competitors().at(0).wait.had, CpuWait::Had::first);
  EXPECT_THAT(blame(), HasSubstr(": others had CPU 0 (--sched all shows all of them)"));
  const PausesReport report = pauses->report();
  EXPECT_EQ(fmt::format("{}", CauseName{report.long_pauses.groups.at(0)}), "no CPU: other threads had it");
  EXPECT_THAT(report.long_pauses.groups[0].holders, testing::IsEmpty());
  EXPECT_EQ(report.long_pauses.groups[0].unknown_holders_ns, 7'000u);
}

TEST_F(PausesBlame, TheThreadsOfOneProgramAreNamedTogether) {
  span(1'000, 10'000, phase_major);
  switches(2'000, leaves(main_thread(), LeftState::preempted, 0, a_thread(501, 501, -1, "cc1plus", false)));
  for (std::int32_t i = 1; i < 6; ++i)
    switches(2'000 + static_cast<std::uint64_t>(i) * 1'000, {.cpu = 0,
                                                             .state = LeftState::preempted,
                                                             .prev = a_thread(500 + i, 500 + i, -1, "cc1plus", false),
                                                             .next = a_thread(501 + i, 501 + i, -1, "cc1plus", false)});
  switches(9'000, enters(main_thread(), 0, a_thread(506, 506, -1, "cc1plus", false)));
  only();
  EXPECT_THAT(blame(), EndsWith(": for 7.00µs of it threads of \"cc1plus\" had it"));
}

TEST_F(PausesTest, AWaitThatBeginsUnderAnotherOneIsCertainOfItsEndOnly) {
  switches(100, enters(main_thread(), 0));
  switches(500, enters(other_thread(), 1));
  switches(600, leaves(other_thread(), LeftState::sleeping, 1, competitor()));
  span(1'000, 10'000, phase_major);
  switches(1'100, leaves(main_thread(), LeftState::sleeping, 0));
  wakes_up(2'000, wakes(main_thread(), competitor(), 1));
  switches(9'000, enters(main_thread(), 1, competitor()));
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.scheduling.competitors().at(0).wait.had, CpuWait::Had::last);
  EXPECT_THAT(blame(), HasSubstr(": others had CPU 1 (--sched all shows"));
}

TEST_F(PausesTest, ATrackedThreadIsSeenToLeave) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  preempted(2'000, 9'000, other_thread());
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.scheduling.competitors().at(0).wait.had, CpuWait::Had::throughout);
}

TEST_F(PausesTest, ACpuThatWasPerhapsIdleIsNotSaidToHaveBeen) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  preempted(2'000, 9'000, nobody());
  play();
  EXPECT_THAT(blame(), EndsWith(": who had CPU 0 is unknown (--sched all shows it)"));
  EXPECT_THAT(pauses->report_text(), HasSubstr("behind unknown threads\n"));
  const PausesReport report = pauses->report();
  EXPECT_EQ(fmt::format("{}", CauseName{report.long_pauses.groups.at(0)}), "no CPU: who had it is unknown");
}

/// Domain 1, which runs on cpu 1, comes to domain 0's section after a wait for the cpu that is not certain to be
/// "hog"'s.
TEST_F(PausesTest, WhoHeldUpALateDomainIsToldAsFarAsItIsCertain) {
  for (const bool notable : {true, false}) {
    clear();
    const std::uint64_t from = notable ? 1'100 : 8'800;
    switches(100, enters(main_thread(), 0));
    switches(200, enters(other_thread(), 1));
    span(1'000, 9'500, phase_leader);
    span(1'010, 9'020, phase_start_barrier);
    preempted(from, 8'900, competitor(), other_thread(), 1);
    span(9'000, 9'100, phase_handler, 1);
    span(9'010, 9'011, phase_start_barrier, 1);
    play();
    const std::string hint = "(--sched all shows all of them)";
    if (notable) {
      EXPECT_THAT(blame(), EndsWith("had no CPU for 7.80µs, while others had CPU 1 " + hint));
    } else {
      EXPECT_THAT(blame(), testing::Not(HasSubstr(hint)));
    }
  }
}

TEST_F(PausesBlame, AThreadThatIsHeldBackFromAnIdleCpuIsToldSo) {
  span(1'000, 10'000, phase_major);
  preempted(2'000, 9'000, nobody());
  EXPECT_EQ(only().time.runnable, 7'000U);
  EXPECT_THAT(blame(), HasSubstr("CPU 0 was idle, which a limit on CPU time or a slow wakeup of the CPU can cause"));
  const PausesReport report = pauses->report();
  EXPECT_EQ(fmt::format("{}", CauseName{report.long_pauses.groups.at(0)}),
            "no CPU: it was idle, as with a limit on CPU time");
}

TEST_F(PausesBlame, ADomainOfTheSameProcessIsNamedAsSuch) {
  span(1'000, 10'000, phase_major);
  preempted(2'000, 9'000, other_thread());
  only();
  EXPECT_THAT(blame(), HasSubstr("thread 4300 of the same process (domain 1) had CPU 0"));
}

TEST_F(PausesBlame, ABlockedPauseTellsOnWhatAndWhoWokeIt) {
  span(1'000, 10'000, phase_major);
  switches(2'000, leaves(main_thread(), LeftState::uninterruptible, 0));
  wakes_up(8'000, wakes(main_thread(), competitor(), 0));
  switches(8'500, enters(main_thread(), 3));
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.time, (TimeSplit{.on_cpu = 2'500, .runnable = 500, .uninterruptible = 6'000}));
  EXPECT_EQ(pause.blocked.other, 6'000U);
  EXPECT_EQ(pause.blocked.barrier + pause.blocked.section, 0U);
  EXPECT_EQ(pause.scheduling.blocked(), 1U);
  EXPECT_EQ(pause.scheduling.longest_block_ns(), 6'000U);
  EXPECT_EQ(pause.scheduling.woken(), 1U);
  ASSERT_THAT(pause.scheduling.wakers(), SizeIs(1));
  EXPECT_EQ(pause.scheduling.wakers().front().thread.comm(), "hog");
  EXPECT_EQ(pause.scheduling.migrations(), 1U);
  EXPECT_EQ(blame_of(pause).cause, Cause::blocked);
  EXPECT_EQ(blame(),
            "its thread 4242 was blocked for 6.00µs of 9.00µs (67%) in the kernel, uninterruptibly (usually on a "
            "disk), not for other domains");
}

TEST_F(PausesBlame, WithoutSchedulerEventsNothingIsGuessed) {
  span(30'000, 40'000, phase_major, 5);
  span(31'000, 39'000, phase_slice, 5);
  const PauseDetails& pause = only();
  EXPECT_EQ(pause.tid, 0);  // scheduler events are there, but none of this domain
  EXPECT_EQ(pause.time, (TimeSplit{.unknown = 10'000}));
  EXPECT_THAT(blame(),
              HasSubstr("unknown for 10.0µs of 10.0µs (100%): no scheduler event says what its thread did, most of "
                        "the pause in major_slice (8.00µs"));
}

TEST_F(PausesTest, WithTheSchedulerOffThatIsSaid) {
  span(1'000, 2'000, phase_major);
  const PauseDetails& pause = only();
  EXPECT_FALSE(counts().scheduler_seen);
  EXPECT_EQ(pause.tid, 0);
  EXPECT_EQ(pause.time, (TimeSplit{.unknown = 1'000}));
  EXPECT_THAT(blame(), HasSubstr("was in major for 1.00µs of 1.00µs (100%), without the phases inside"));
  EXPECT_THAT(pauses->report_text(),
              AllOf(HasSubstr("  1 × 1.00µs, most of it in major\n"),
                    HasSubstr("no scheduler events: it is unknown whether threads ran or waited\n")));
}

TEST_F(PausesTest, AContradictionMakesTimeUnknownAndIsCounted) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 10'000, phase_major);
  // The switch that took it from its cpu was dropped.
  switches(5'000, {.cpu = 0, .state = LeftState::sleeping, .prev = competitor(), .next = nobody()});
  switches(8'000, enters(main_thread(), 0));
  const PausesReport report = play({}, {.end_ns = 20'000, .drops = {{"switch", 3}, {"exec", 5}, {"wakeup", 1}}});
  ASSERT_THAT(report.worst, SizeIs(1));
  EXPECT_GT(report.worst[0]->time.unknown, 0U);
  EXPECT_EQ(report.worst[0]->time.total(), 9'000U);
  EXPECT_GT(report.counts.scheduler_contradictions, 0U);
  EXPECT_EQ(report.counts.scheduler_dropped, 4U);
  EXPECT_THAT(
      pauses->report_text(),
      HasSubstr("warning: what threads did is unknown for 7.00µs of 9.00µs in pauses (78%): the kernel dropped 4\n"
                "  scheduler events; 1 gap in the scheduler events of a thread\n"));
}

}  // namespace
}  // namespace rtev::test
