// SPDX-License-Identifier: MIT
// CPU time of processes and domains from switches.
#include <gmock/gmock.h>

#include <initializer_list>
#include <string>

#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

class StatsCpuTest : public StatsTest {};

TEST_F(StatsCpuTest, CpuTimeIsUnknownWithoutTheScheduler) {
  span(10, 20, "minor");
  EXPECT_EQ(figures().figures.cpu_ns, std::nullopt);
  EXPECT_EQ(figures().domains.front().figures.cpu_ns, std::nullopt);
}

TEST_F(StatsCpuTest, CpuTimeGoesToTheDomainOfTheThread) {
  process(0, ProcessAction::exec);
  life(100, Lifecycle::ring_start);
  life(100, Lifecycle::domain_spawn, 1);
  change(200, stranger(), thread(pid, 0));
  change(300, thread(pid, 0), stranger());
  change(400, stranger(), thread(77, 1), 1);
  change(450, stranger(), thread(pid, 0));
  change(460, thread(pid, 0), stranger());
  change(600, thread(77, 1), stranger(), 1);
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.cpu_ns, 310);
  EXPECT_EQ(process.domains[0].figures.cpu_ns, 110);
  EXPECT_EQ(process.domains[1].figures.cpu_ns, 200);
  EXPECT_EQ(stats.report(world.registry).total.cpu_ns, 310);
}

TEST_F(StatsCpuTest, AProgramRunsFromItsRingUntilItsFirstSwitch) {
  process(1000, ProcessAction::exec);
  process(1150, ProcessAction::ring);
  life(1200, Lifecycle::ring_start);
  change(1500, thread(pid, 0), stranger());
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.cpu_ns, 350);
  EXPECT_EQ(process.cpu_since_ns, 1150);
  EXPECT_TRUE(process.lacks_cpu_time());
  EXPECT_EQ(process.domains.front().figures.cpu_ns, 300);
}

/// It may have waited for a cpu all the time until then.
TEST_F(StatsCpuTest, NothingIsMadeUpOfTheTimeBeforeAProgramIsTracked) {
  process(1000, ProcessAction::exec);
  change(4000, thread(pid, -1), stranger());
  change(5000, stranger(), thread(pid, -1));
  process(5100, ProcessAction::ring);
  change(5300, thread(pid, 0), stranger());
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.cpu_ns, 300);
  EXPECT_EQ(process.cpu_since_ns, 4000);
}

TEST_F(StatsCpuTest, AForkedChildIsTrackedFromTheStart) {
  process(1000, ProcessAction::fork);
  change(1500, thread(pid, 0), stranger());
  const ProcessStats process = figures();
  EXPECT_EQ(process.figures.cpu_ns, 500);
  EXPECT_EQ(process.cpu_since_ns, 1000);
  EXPECT_FALSE(process.lacks_cpu_time());
}

TEST_F(StatsCpuTest, WhereSwitchesWereDroppedNoCpuTimeIsMadeUp) {
  process(0, ProcessAction::exec);
  life(0, Lifecycle::ring_start);
  change(100, stranger(), thread(pid, 0));
  feed(Events(0).add_record(200, EventKind::lost, Loss{9, 200, 500}, static_cast<std::uint16_t>(LossReason::dropped),
                            first_sched_stream));
  change(300, thread(pid, 0), stranger());
  change(350, thread(78, -1), stranger(), 1);
  change(400, stranger(), thread(pid, 0));
  // Nobody saw it come, so it was there when the gap ended.
  change(530, thread(79, -1), stranger(), 1);
  change(600, thread(pid, 0), stranger());
  change(700, stranger(), thread(pid, 0));
  change(750, thread(pid, 0), stranger());
  EXPECT_EQ(figures().figures.cpu_ns, 100 + 30 + 50);
}

TEST_F(StatsCpuTest, CpuTimeOfPausesIsALowerBoundWhereTheirThreadsWereNotSeen) {
  process(0, ProcessAction::exec);
  life(100, Lifecycle::ring_start);
  life(100, Lifecycle::domain_spawn, 1);
  change(200, stranger(), thread(pid, 0));
  span(210, 250, "major");
  EXPECT_EQ(figures().figures.gc_cpu_ns, 40);
  EXPECT_FALSE(figures().figures.gc_cpu_bound());
  span(260, 290, "major", 1);
  EXPECT_EQ(figures().figures.gc_cpu_ns, 40);
  EXPECT_TRUE(figures().figures.gc_cpu_bound());
}

class StatsSampleTest : public StatsTest {
 protected:
  void sample(std::uint64_t time, StackIndex stack, std::uint64_t count, bool holds_lock = true) {
    Sample sample{};
    sample.process = world.process;
    sample.pid = sample.tid = pid;
    sample.stack = stack;
    sample.weight = count * 10'000'000;
    sample.role = ThreadRole::mutator;
    sample.holds_lock = holds_lock;
    feed(Events(0).add_record(time, EventKind::sample, sample, static_cast<std::uint16_t>(SampleKind::on_cpu),
                              sample_stream));
  }
  StackIndex stack(std::initializer_list<std::string_view> functions) {
    StackTable& stacks = world.registry.stacks();
    StackIndex index = stacks.add_stack(0, stacks.add_frame({.kind = FrameKind::ocaml, .function = "App.run"}));
    for (const std::string_view function : functions)
      index = stacks.add_stack(index, stacks.add_frame({.kind = FrameKind::c, .function = function}));
    return index;
  }
  std::string text() { return stats_sentences(stats.report(world.registry)); }
};

TEST_F(StatsSampleTest, GcIsWhatIsInAPhaseOrBelowAnEntryOfTheRuntime) {
  process(0, ProcessAction::exec);
  life(100, Lifecycle::ring_start);
  change(100, stranger(), thread(pid, 0));
  EXPECT_EQ(figures().figures.gc_sample_share(), std::nullopt);
  sample(150, stack({}), 10);
  sample(160, stack({"caml_call_gc", "caml_poll_gc_work", "caml_try_run_on_all_domains_with_spin_work"}), 60);
  begin(200, "minor");
  sample(210, stack({"oldify_one"}), 30);
  sample(215, stack({"memcpy"}), 20, false);  // another thread, in C
  end(220, "minor");
  change(320, thread(pid, 0), stranger());
  EXPECT_DOUBLE_EQ(figures().figures.gc_sample_share().value(), 0.75);
  EXPECT_DOUBLE_EQ(stats.report(world.registry).total.gc_sample_share().value(), 0.75);
  EXPECT_THAT(text(), testing::HasSubstr("75% of its CPU time"));
  EXPECT_THAT(text(), testing::HasSubstr("in phases of the GC)"));
  EXPECT_THAT(stats.report_json(world.registry), testing::HasSubstr(R"("gc_sample_share":0.75)"));
}

TEST_F(StatsSampleTest, WithoutStacksItIsOfThePhases) {
  process(0, ProcessAction::exec);
  life(100, Lifecycle::ring_start);
  change(100, stranger(), thread(pid, 0));
  span(200, 220, "minor");
  change(300, thread(pid, 0), stranger());
  EXPECT_THAT(text(), testing::HasSubstr("in phases of the GC\n  10% of its CPU time"));
}

/// While a program is traced stacks get their names after the sample.
TEST_F(StatsSampleTest, AStackWithoutNamesCountsWhenItHasThem) {
  process(0, ProcessAction::exec);
  StackTable& stacks = world.registry.stacks();
  const StackIndex reserved = stacks.reserve();
  sample(100, reserved, 10);
  EXPECT_EQ(figures().figures.gc_sample_share(), std::nullopt);
  stacks.set_reserved(reserved, stack({"caml_gc_major"}));
  sample(200, stack({}), 10);
  EXPECT_DOUBLE_EQ(figures().figures.gc_sample_share().value(), 0.5);
  sample(300, stacks.reserve(), 20);
  stats.summary({.end_ns = 400}, world.registry);
  EXPECT_DOUBLE_EQ(figures().figures.gc_sample_share().value(), 0.25);
}

TEST_F(StatsCpuTest, AThreadWithoutADomainIsTheProcesss) {
  process(0, ProcessAction::exec);
  life(0, Lifecycle::ring_start);
  change(100, stranger(), thread(78, -1));
  change(150, thread(78, -1), stranger());
  EXPECT_EQ(figures().figures.cpu_ns, 50);
  EXPECT_EQ(figures().domains.front().figures.cpu_ns, std::nullopt);
}

TEST_F(StatsCpuTest, TheMainThreadRunsDomain0) {
  process(0, ProcessAction::exec);
  life(10, Lifecycle::ring_start);
  change(100, stranger(), thread(pid, -1));
  process(150, ProcessAction::exit, 0);
  EXPECT_EQ(figures().domains.front().figures.cpu_ns, 50);
}

TEST_F(StatsCpuTest, WhatRunsStillCountsAsFarAsItGot) {
  process(0, ProcessAction::exec);
  life(0, Lifecycle::ring_start);
  change(100, stranger(), thread(pid, 0));
  life(300, Lifecycle::ring_stop);
  EXPECT_EQ(figures().figures.cpu_ns, 200);
  EXPECT_EQ(figures().domains.front().figures.cpu_ns, 200);
  change(400, thread(pid, 0), stranger());
  EXPECT_EQ(figures().figures.cpu_ns, 300);
}

TEST_F(StatsCpuTest, AThreadThatOutlivesItsDomainDoesNotCountForTheNext) {
  process(0, ProcessAction::exec);
  life(100, Lifecycle::domain_spawn, 1);
  change(110, stranger(), thread(77, 1));
  life(200, Lifecycle::domain_terminate, 1);
  life(210, Lifecycle::domain_spawn, 1);
  change(260, thread(77, 1), stranger(), 0, LeftState::dead);
  life(300, Lifecycle::domain_terminate, 1);
  const ProcessStats process = figures();
  EXPECT_EQ(process.domains[0].figures.cpu_ns, 90);
  EXPECT_EQ(process.domains[1].figures.cpu_ns, std::nullopt);
  EXPECT_EQ(process.figures.cpu_ns, 150);
}

TEST_F(StatsCpuTest, AnExecDividesTheTimeOfTheThreadThatGoesOn) {
  process(0, ProcessAction::exec);
  life(0, Lifecycle::ring_start);
  change(100, stranger(), thread(pid, 0));
  process(300, ProcessAction::exit, exit_by_exec);
  const ProcessIndex next = world.registry.add_process(World::default_info());
  process(300, ProcessAction::exec, next, 0);
  process(320, ProcessAction::ring, next, 0);
  change(350, thread(pid, 0), stranger());
  const StatsReport report = stats.report(world.registry);
  ASSERT_EQ(report.processes.size(), 2);
  EXPECT_EQ(report.processes[0].figures.cpu_ns, 200);
  EXPECT_EQ(report.processes[1].figures.cpu_ns, 30);
}

TEST_F(StatsCpuTest, DroppedSwitchesAreTold) {
  process(0, ProcessAction::exec);
  RunSummary summary{.end_ns = 1000};
  summary.drops = {{"switch", 3}, {"wakeup", 4}};
  stats.summary(summary, world.registry);
  const StatsReport report = stats.report(world.registry);
  EXPECT_EQ(report.switches_dropped, 3);
  EXPECT_EQ(report.end_ns, 1000);
  EXPECT_EQ(report.processes.front().figures.wall_ns, 1000);
}

}  // namespace
}  // namespace rtev::test
