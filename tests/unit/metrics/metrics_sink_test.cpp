// SPDX-License-Identifier: MIT
#include "metrics/metrics_sink.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

#include "unit/metrics/metrics_fixture.hpp"

namespace rtev::test {
namespace {

TEST_F(MetricsTest, ProcessesAreCountedAsTheyComeAndGo) {
  process(10, ProcessAction::found);
  const ProcessIndex started = add_process(2, "server"), forked = add_process(3, "server");
  process(20, ProcessAction::exec, started);
  process(30, ProcessAction::fork, forked);
  EXPECT_EQ(value("ocaml_processes{group=server}"), 3);
  EXPECT_EQ(value("ocaml_process_starts{group=server}"), 1);
  EXPECT_EQ(value("ocaml_process_forks{group=server}"), 1);
  process(40, ProcessAction::exit, started, 0);
  process(50, ProcessAction::exit, forked, SIGKILL);
  process(60, ProcessAction::exit, exit_by_exec);
  EXPECT_EQ(value("ocaml_processes{group=server}"), 0);
  for (const char* reason : {"exit", "signal", "exec"})
    EXPECT_EQ(value(fmt::format("ocaml_process_exits{{group=server,reason={}}}", reason)), 1);
  EXPECT_EQ(value("ocaml_process_starts{group=server}"), 1);
}

TEST_F(MetricsTest, AProgramThatBeganSinceAndIsFoundHasStarted) {
  ProcessInfo before = World::default_info(), since = World::default_info();
  before.exe = since.exe = "/bin/server";
  before.pid = 2;
  before.start_ticks = 1;
  since.pid = 3;
  since.start_ticks = UINT64_MAX;
  process(10, ProcessAction::found, world.registry.add_process(before));
  EXPECT_EQ(value("ocaml_process_starts{group=server}"), 0);
  process(20, ProcessAction::found, world.registry.add_process(since));
  EXPECT_EQ(value("ocaml_process_starts{group=server}"), 1);
}

TEST_F(MetricsTest, AnUnseenExitIsAnExit) {
  process(10, ProcessAction::exec);
  process(20, ProcessAction::exit, exit_unseen);
  EXPECT_EQ(value("ocaml_process_exits{group=server,reason=exit}"), 1);
  // A second one counts nothing.
  process(30, ProcessAction::exit, exit_unseen);
  EXPECT_EQ(value("ocaml_process_exits{group=server,reason=exit}"), 1);
  EXPECT_EQ(value("ocaml_processes{group=server}"), 0);
}

TEST_F(MetricsTest, APauseHasTheKindOfWhatIsInIt) {
  play(
      "1000 >interrupt_remote 1100 >stw_handler 1200 >minor 1300 <minor 1400 <stw_handler 1500 <interrupt_remote "
      "2000 >minor 2100 <minor 3000 >major_slice 3100 >minor 3200 <minor 3300 <major_slice "
      "4000 >explicit_gc_minor 4100 >minor 4200 <minor 4300 <explicit_gc_minor 5000 >stw_handler 5020 <stw_handler "
      "6000 >major_sweep 7000 <major_sweep 8000 >domain_condition_wait 9000 <domain_condition_wait");
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=minor}").count(), 2U);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=minor}").sum_ns(), 600U);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=major}").sum_ns(), 1300U);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=explicit}").sum_ns(), 300U);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=stw}").sum_ns(), 20U);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=other}").count(), 0U);
  EXPECT_EQ(value("ocaml_condition_wait{group=server}"), 1000);
}

TEST_F(MetricsTest, TasksAreCountedByState) {
  process(10, ProcessAction::found);
  EXPECT_FALSE(collected().values.contains("ocaml_tasks{group=server,lib=eio,state=running}"));
  world.user_names = {{1, "eio.fiber"}, {2, "eio.suspend_fiber"}, {3, "eio.exit_fiber"}};
  feed(Events(world.slot)
           .add(20, EventKind::user_int, 1, 7)
           .add_bytes(30, EventKind::user_custom, "read", 2)
           .add(40, EventKind::user_int, 1, 8));
  EXPECT_EQ(value("ocaml_tasks{group=server,lib=eio,state=running}"), 1);
  EXPECT_EQ(value("ocaml_tasks{group=server,lib=eio,state=runnable}"), 0);
  EXPECT_EQ(value("ocaml_tasks{group=server,lib=eio,state=suspended}"), 1);
  feed(Events(world.slot).add(50, EventKind::user_int, 3, 8));
  EXPECT_EQ(value("ocaml_tasks{group=server,lib=eio,state=running}"), 0);
  process(60, ProcessAction::exit);
  EXPECT_EQ(value("ocaml_tasks{group=server,lib=eio,state=suspended}"), 0);
}

TEST_F(MetricsTest, TimeInPhasesAddsUpToThePauses) {
  play(
      "1000 >interrupt_remote 1100 >stw_handler 1200 >minor 1300 <minor 1400 <stw_handler 1500 <interrupt_remote "
      "3000 >major_slice 3100 >major_mark 3200 <major_mark 3300 <major_slice");
  const MetricCollector all = collected();
  std::int64_t phases = 0;
  std::uint64_t pauses = 0;
  for (const auto& [series, amount] : all.values)
    if (series.starts_with("ocaml_gc_time{")) phases += amount;
  for (const auto& [series, of] : all.histograms)
    if (series.starts_with("ocaml_gc_pause_duration{")) pauses += of.sum_ns();
  EXPECT_EQ(phases, 800);
  EXPECT_EQ(pauses, 800U);
  EXPECT_EQ(all.values.at("ocaml_gc_time{group=server,phase=mark}"), 100);
  EXPECT_EQ(all.values.at("ocaml_gc_time{group=server,phase=major}"), 200);
  EXPECT_EQ(all.values.at("ocaml_gc_time{group=server,phase=minor}"), 100);
}

TEST_F(MetricsTest, ACollectionOfAllDomainsIsOne) {
  for (const char* script : {"1000 >minor 1000 >minor@1 1100 <minor@1 1100 <minor", "2000 >minor 2100 <minor",
                             "3000 >major_gc_stw 3000 >major_gc_stw@1 3100 <major_gc_stw 3100 <major_gc_stw@1",
                             "4000 >major_slice 4000 >major_slice@1 4100 <major_slice 4100 <major_slice@1",
                             "5000 >compaction 5100 <compaction", "6000 >explicit_gc_stat 6100 <explicit_gc_stat"})
    play(script);
  EXPECT_EQ(value("ocaml_gc_minor_collections{group=server}"), 2);
  EXPECT_EQ(value("ocaml_gc_major_cycles{group=server}"), 1);
  EXPECT_EQ(value("ocaml_gc_major_slices{group=server}"), 2);
  EXPECT_EQ(value("ocaml_gc_compactions{group=server}"), 1);
  EXPECT_EQ(value("ocaml_gc_explicit{group=server,function=stat}"), 1);
  EXPECT_EQ(value("ocaml_gc_explicit{group=server,function=full_major}"), 0);
}

TEST_F(MetricsTest, AllocationsAddUpAndNeverFall) {
  count(10, "minor_allocated", 100);
  count(20, "minor_allocated", 50, 1);
  count(30, "minor_promoted", 7);
  count(40, "major_allocated_words", 2);
  count(50, "force_minor_memprof", 9);
  EXPECT_EQ(value("ocaml_gc_minor_allocated{group=server}"), 150);
  EXPECT_EQ(value("ocaml_gc_promoted{group=server}"), 7);
  EXPECT_EQ(value("ocaml_gc_major_allocated{group=server}"), 16);
  EXPECT_EQ(value("ocaml_gc_forced{group=server,cause=force_minor_memprof}"), 1);
  // A program may write anything.
  for (const char* name : {"minor_allocated", "minor_promoted", "major_allocated_words", "major_heap_pool_words"})
    for (int i = 0; i < 2; ++i) count(60, name, UINT64_MAX);
  EXPECT_EQ(value("ocaml_gc_minor_allocated{group=server}"), INT64_MAX);
  EXPECT_EQ(value("ocaml_gc_promoted{group=server}"), INT64_MAX);
  EXPECT_GT(value("ocaml_gc_major_allocated{group=server}"), INT64_MAX - 8);
  EXPECT_GT(value("ocaml_heap_size{group=server,space=pool}"), INT64_MAX - 8);
}

TEST_F(MetricsTest, HeapsAreThoseOfNow) {
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), std::nullopt);
  process(5, ProcessAction::found);
  count(10, "major_heap_pool_words", 100);
  count(20, "major_heap_pool_words", 30, 1);
  count(30, "major_heap_large_words", 7);
  count(40, "major_heap_pool_words", 60);
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 90 * 8);
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=large}"), 7 * 8);
  EXPECT_EQ(value("ocaml_heap_live{group=server,space=large}"), 7 * 8);
  const ProcessIndex second = add_process(2, "server");
  const std::uint32_t slot = world.add_ring(second);
  count(50, "major_heap_pool_words", 1000, 0, slot);
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 1090 * 8);
  process(60, ProcessAction::exit);
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 1000 * 8);
  process(70, ProcessAction::exit, second);
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 0);
}

TEST_F(MetricsTest, TheHeapOfADomainEndsWithIt) {
  feed(Events(world.slot).add(5, Lifecycle::domain_spawn, 0, 1));
  play("6 >minor@1 7 <minor@1 8 >minor 9 <minor");
  count(10, "major_heap_pool_words", 100);
  count(20, "major_heap_pool_words", 30, 1);
  EXPECT_EQ(value("ocaml_domains{group=server}"), 2);
  EXPECT_EQ(value("ocaml_domain_spawns{group=server}"), 1);
  feed(Events(world.slot).add(30, Lifecycle::domain_terminate, 0, 1));
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 100 * 8);
  EXPECT_EQ(value("ocaml_domains{group=server}"), 1);
  // Another one with its number.
  count(40, "major_heap_pool_words", 5, 1);
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 105 * 8);
}

TEST_F(MetricsTest, WhatEndedKeepsItsCounts) {
  process(1, ProcessAction::exec);
  play("1000 >minor 1100 <minor");
  count(1200, "minor_allocated", 64);
  process(2000, ProcessAction::exit);
  const ProcessIndex next = add_process(2, "server");
  process(3000, ProcessAction::exec, next);
  feed(Events(world.add_ring(next)).add("4000 >minor 4500 <minor"));
  EXPECT_EQ(value("ocaml_gc_minor_collections{group=server}"), 2);
  EXPECT_EQ(value("ocaml_gc_minor_allocated{group=server}"), 64);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=minor}").sum_ns(), 600U);
  EXPECT_EQ(value("ocaml_domains{group=server}"), 1);
}

TEST_F(MetricsTest, LostWordsAndUnfinishedPausesAreCounted) {
  play("1000 >major 2000 ? 3000 >major");
  process(4000, ProcessAction::exit);
  EXPECT_EQ(value("ocaml_ring_lost_words{group=server,reason=overwritten}"), 100);
  EXPECT_EQ(value("ocaml_gc_unfinished_pauses{group=server,reason=lost}"), 1);
  EXPECT_EQ(value("ocaml_gc_unfinished_pauses{group=server,reason=ended}"), 1);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=major}").count(), 0U);
  EXPECT_EQ(value("ocaml_probe_gaps{group=server}"), 0);
  feed(Events(world.slot)
           .add_record(5000, EventKind::lost, Loss{.words = 0, .from_ns = 1, .to_ns = 2},
                       static_cast<std::uint16_t>(LossReason::unprobed)));
  EXPECT_EQ(value("ocaml_probe_gaps{group=server}"), 1);
  EXPECT_EQ(value("ocaml_ring_lost_words{group=server,reason=unprobed}"), std::nullopt) << "how many is unknown";
  feed(Events(0)
           .add_record(5000, EventKind::lost, Loss{.words = 3, .from_ns = 1, .to_ns = 2},
                       static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream)
           .add_record(5000, EventKind::lost, Loss{.words = 5, .from_ns = 1, .to_ns = 2},
                       static_cast<std::uint16_t>(LossReason::samples), sample_stream));
  EXPECT_EQ(value("rtev_bpf_kernel_lost{source=scheduler}"), 3);
  EXPECT_EQ(value("rtev_bpf_kernel_lost{source=stacks}"), 5);
  EXPECT_EQ(value("rtev_bpf_events{kind=lost}"), 4);
}

TEST_F(MetricsTest, SectionsCountOnceByTheirLeader) {
  feed(Events(world.slot)
           .add("1000 >stw_leader 1010 >stw_api_barrier 1300 >stw_handler@1 1310 >stw_api_barrier@1 1400 "
                "<stw_api_barrier 1400 <stw_api_barrier@1 1800 <stw_leader 1850 <stw_handler@1"));
  EXPECT_EQ(histogram("ocaml_stw_duration{group=server}").count(), 1U);
  const DurationHistogram arrival = histogram("ocaml_stw_arrival{group=server}");
  EXPECT_EQ(arrival.count(), 1U);
  EXPECT_GE(arrival.sum_ns(), 300U);
  EXPECT_LE(arrival.sum_ns(), 310U);
}

TEST_F(MetricsTest, ThreadsThatRunHaveUsedCpuTimeAlready) {
  const Thread thread = a_thread(4242, 4242, 0);
  process(1, ProcessAction::found);
  scheduler(100, EventKind::sched_switch, enters(thread));
  metrics->advance(1100, world.registry);
  EXPECT_EQ(value("ocaml_thread_cpu{group=server,role=mutator}"), 1000);
  scheduler(1200, EventKind::sched_switch, leaves(thread, LeftState::preempted, 0, competitor()));
  scheduler(1500, EventKind::sched_switch, enters(thread, 0, competitor()));
  EXPECT_EQ(value("ocaml_thread_cpu{group=server,role=mutator}"), 1100);
  EXPECT_EQ(histogram("ocaml_sched_delay{group=server}").count(), 1U);
  EXPECT_EQ(histogram("ocaml_sched_delay{group=server}").sum_ns(), 300U);
}

TEST_F(MetricsTest, UsageTakesThePlaceOfSwitches) {
  const Thread thread = a_thread(4242, 4242, 0);
  process(1, ProcessAction::found);
  const auto use = [&](std::uint64_t time, std::int32_t pid) {
    scheduler(
        time, EventKind::usage,
        ThreadUsage{.pid = pid, .role = ThreadRole::mutator, .delay_count = 2, .cpu_ns = 500, .delays_ns = {3, 4}});
  };
  scheduler(80, EventKind::sched_switch, enters(thread));
  use(90, 4242);
  use(91, 1);  // of no traced program
  EXPECT_EQ(value("ocaml_thread_cpu{group=server,role=mutator}"), 500);
  EXPECT_EQ(histogram("ocaml_sched_delay{group=server}").sum_ns(), 7U);
  // Of the switches that are there nothing is counted twice. A pause without any is on the CPU from begin to end.
  play("100 >minor 600 <minor");
  EXPECT_EQ(value("ocaml_gc_cpu{group=server}"), 500);
  play("650 >minor");
  scheduler(700, EventKind::sched_switch, leaves(thread, LeftState::preempted, 0, competitor()));
  scheduler(800, EventKind::sched_switch, enters(thread, 0, competitor()));
  play("900 <minor");
  EXPECT_EQ(value("ocaml_gc_cpu{group=server}"), 650);
  EXPECT_EQ(value("ocaml_thread_cpu{group=server,role=mutator}"), 500);
  EXPECT_EQ(histogram("ocaml_sched_delay{group=server}").sum_ns(), 7U);
}

TEST_F(MetricsTest, ProcessesOfTooManyGroupsAreFolded) {
  make({.max_groups = 2});
  std::vector<std::string> said;
  metrics->on_folded(
      [&](const std::string& group, std::uint32_t user) { said.push_back(fmt::format("{} {}", group, user)); });
  std::vector<ProcessIndex> all;
  for (std::int32_t pid = 1; pid <= 5; ++pid) {
    all.push_back(add_process(pid, "p" + std::to_string(pid), 7));
    process(static_cast<std::uint64_t>(pid), ProcessAction::exec, all.back());
    count(10, "minor_allocated", 1, 0, world.add_ring(all.back()));
  }
  EXPECT_EQ(value("ocaml_processes{group=p1}"), 1);
  EXPECT_EQ(value("ocaml_processes{group=p2}"), 1);
  EXPECT_EQ(value("ocaml_processes{group=p3}"), std::nullopt);
  EXPECT_EQ(value("ocaml_processes{group=other}"), 3);
  EXPECT_EQ(value("ocaml_gc_minor_allocated{group=other}"), 3);
  EXPECT_EQ(value("rtev_bpf_groups"), 3);
  EXPECT_EQ(value("rtev_bpf_groups_folded"), 3);
  EXPECT_THAT(said, testing::ElementsAre("p3 7"));
  // A group without processes makes room for the next one of its user.
  process(20, ProcessAction::exit, all[0]);
  process(30, ProcessAction::exec, add_process(6, "p6", 7));
  const MetricCollector last = collected();
  EXPECT_EQ(last.values.at("ocaml_processes{group=p6}"), 1);
  EXPECT_EQ(last.values.at("ocaml_process_exits{group=p1,reason=exit}"), 1) << "shown for the last time";
  EXPECT_EQ(value("ocaml_processes{group=p1}"), std::nullopt);
  EXPECT_EQ(value("ocaml_process_starts{group=other}"), 3) << "what was counted in a group is not counted again";
  EXPECT_EQ(value("rtev_bpf_groups_forgotten"), 1);
  // So does the next one for a process that runs in "other".
  process(40, ProcessAction::exit, all[1]);
  metrics->advance(2 * hour, world.registry);
  EXPECT_EQ(value("ocaml_processes{group=other}"), 2);
  EXPECT_EQ(value("ocaml_process_starts{group=other}"), 3);
}

TEST_F(MetricsTest, AGroupThatReturnsBeforeItWasForgottenGoesOn) {
  make({.max_groups = 2});
  process(1, ProcessAction::exec, add_process(1, "service"));
  for (const char* name : {"a", "b", "a"}) {
    const ProcessIndex index = add_process(2, name);
    process(1, ProcessAction::exec, index);
    process(2, ProcessAction::exit, index);
  }
  EXPECT_EQ(value("ocaml_process_starts{group=a}"), 2);
}

TEST_F(MetricsTest, NoUserPushesServicesOfOthersOut) {
  make({.max_groups = 10});
  constexpr std::uint32_t stranger = 1000, root = 0;
  std::int32_t pid = 0;
  const auto start = [&](const std::string& name, std::uint32_t user) {
    const ProcessIndex index = add_process(++pid, name, user);
    process(static_cast<std::uint64_t>(pid), ProcessAction::exec, index);
    count(static_cast<std::uint64_t>(pid), "major_heap_pool_words", 1, 0, world.add_ring(index));
    return index;
  };
  // Any number of names, of programs that run and of programs that end.
  for (int i = 0; i < 50; ++i) start("spam" + std::to_string(i), stranger);
  for (int i = 0; i < 50; ++i) process(100, ProcessAction::exit, start("short" + std::to_string(i), stranger));
  for (int i = 0; i < 5; ++i) start("service" + std::to_string(i), root);
  for (int i = 50; i < 100; ++i) start("spam" + std::to_string(i), stranger);
  MetricCollector all = collected();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(all.values[fmt::format("ocaml_processes{{group=service{}}}", i)], 1) << i;
  // Programs that went on in "other" are all there.
  EXPECT_EQ(all.values["ocaml_processes{group=other}"], 95);
  EXPECT_EQ(all.values["ocaml_heap_size{group=other,space=pool}"], 95 * 8);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(all.values[fmt::format("ocaml_processes{{group=spam{}}}", i)], 1) << "of those that run the newest go";
  // A sixth service is beyond the share of its user: it gets a group as soon as one has been unused for long.
  start("service5", root);
  EXPECT_EQ(value("ocaml_processes{group=service5}"), std::nullopt);
  metrics->advance(2 * hour, world.registry);
  EXPECT_EQ(value("ocaml_processes{group=service5}"), std::nullopt);
}

TEST_F(MetricsTest, AGroupWithoutProcessesStaysItsUsers) {
  make({.max_groups = 4});
  constexpr std::uint32_t stranger = 1000, root = 0;
  const ProcessIndex job = add_process(1, "job", root);
  process(1, ProcessAction::exec, job);
  process(2, ProcessAction::exit, job);
  for (std::int32_t pid = 2; pid < 20; ++pid)
    process(3, ProcessAction::exec, add_process(pid, "spam" + std::to_string(pid), stranger));
  EXPECT_EQ(value("ocaml_process_starts{group=job}"), 1);
  // Another user may have it after an hour.
  metrics->advance(2 * hour, world.registry);
  EXPECT_EQ(value("ocaml_process_exits{group=job,reason=exit}"), 1) << "for the last time";
  EXPECT_EQ(value("ocaml_process_starts{group=job}"), std::nullopt);
  // Then it takes one of those beyond the share of the other user.
  process(2 * hour + 1, ProcessAction::exec, add_process(30, "job", root));
  EXPECT_EQ(value("ocaml_processes{group=job}"), 1);
}

TEST_F(MetricsTest, WhoeverJoinsAGroupDoesNotRemoveIt) {
  make({.max_groups = 4});
  constexpr std::uint32_t stranger = 1000, root = 0, third = 33;
  process(1, ProcessAction::exec, add_process(1, "shop", stranger));
  process(1, ProcessAction::exec, add_process(2, "shop", root));
  for (std::int32_t pid = 3; pid < 20; ++pid)
    process(2, ProcessAction::exec, add_process(pid, "spam" + std::to_string(pid), stranger));
  process(3, ProcessAction::exec, add_process(30, "web", third));
  EXPECT_EQ(value("ocaml_processes{group=shop}"), 2);
  EXPECT_EQ(value("ocaml_processes{group=web}"), 1);
}

TEST_F(MetricsTest, NewSeriesAreLimited) {
  make({.max_groups = 4});
  for (std::int32_t pid = 1; pid <= 100; ++pid) {
    const ProcessIndex index = add_process(pid, "job" + std::to_string(pid));
    process(static_cast<std::uint64_t>(pid), ProcessAction::exec, index);
    process(static_cast<std::uint64_t>(pid), ProcessAction::exit, index);
  }
  EXPECT_EQ(value("rtev_bpf_groups_forgotten"), 4);
  EXPECT_EQ(value("rtev_bpf_groups_folded"), 92);
  EXPECT_LE(value("rtev_bpf_groups"), 5);
}

TEST_F(MetricsTest, AProgramMayBeCalledOther) {
  const ProcessIndex other = add_process(1, "other");
  process(1, ProcessAction::exec, other);
  EXPECT_EQ(value("ocaml_processes{group=other}"), 1);
  process(2, ProcessAction::exit, other);
  EXPECT_EQ(value("ocaml_processes{group=other}"), 0);
}

TEST_F(MetricsTest, AServiceThatIsKnownLateHasItsProcess) {
  process(1, ProcessAction::exec);
  play("1000 >minor 1100 <minor");
  count(1200, "major_heap_pool_words", 10);
  metrics->advance(1300, world.registry);
  EXPECT_EQ(value("ocaml_processes{group=server}"), 1);
  world.registry.process(world.process).service.name = "shop";
  metrics->advance(1400, world.registry);
  for (const auto& [series, amount] : {std::pair{"ocaml_processes", 1}, {"ocaml_domains", 1}}) {
    EXPECT_EQ(value(std::string(series) + "{group=server}"), 0) << series;
    EXPECT_EQ(value(std::string(series) + "{group=shop}"), amount) << series;
  }
  EXPECT_EQ(value("ocaml_heap_size{group=server,space=pool}"), 0);
  EXPECT_EQ(value("ocaml_heap_size{group=shop,space=pool}"), 80);
  // What was counted stays.
  EXPECT_EQ(value("ocaml_process_starts{group=server}"), 1);
  EXPECT_EQ(value("ocaml_gc_minor_collections{group=server}"), 1);
  play("2000 >minor 2100 <minor");
  EXPECT_EQ(value("ocaml_gc_minor_collections{group=shop}"), 1);
  process(3000, ProcessAction::exit);
  EXPECT_EQ(value("ocaml_process_exits{group=shop,reason=exit}"), 1);
  EXPECT_EQ(value("ocaml_processes{group=shop}"), 0);
  EXPECT_EQ(value("ocaml_domains{group=shop}"), 0);
  EXPECT_EQ(value("ocaml_heap_size{group=shop,space=pool}"), 0);
}

TEST_F(MetricsTest, ProcessesWithoutEventsAreToldFromThoseThatHaveNone) {
  const auto without = [&](std::string_view group, std::string_view reason) {
    return value(fmt::format("ocaml_processes_without_events{{group={},reason={}}}", group, reason));
  };
  ProcessInfo& info = world.registry.process(world.process);
  info.ring = RingState::none;
  process(1, ProcessAction::exec);
  EXPECT_EQ(without("server", "off"), 1);
  info.ring = RingState::active;
  process(2, ProcessAction::ring);
  EXPECT_EQ(without("server", "off"), 0) << "it has written none yet";
  info.words.events = 5;
  info.ring = RingState::paused;
  process(3, ProcessAction::pause);
  EXPECT_EQ(without("server", "off"), 1) << "whatever it wrote before";
  info.service.name = "shop";
  metrics->advance(4, world.registry);
  EXPECT_EQ(without("server", "off"), 0);
  EXPECT_EQ(without("shop", "off"), 1);
  info.words.events = 0;
  info.ring = RingState::shared;  // no event says so
  metrics->advance(4 + 2'000'000'000, world.registry);
  EXPECT_EQ(without("shop", "off"), 0);
  EXPECT_EQ(without("shop", "unread"), 1);
  process(5, ProcessAction::exit);
  EXPECT_EQ(without("shop", "unread"), 0);
  EXPECT_EQ(value("ocaml_processes{group=shop}"), 0);
}

TEST_F(MetricsTest, LongPausesBecomeSpansFewAtATime) {
  make({.pause_span_ns = 1000});
  play("1000 >major 1999 <major 3000 >major 4000 <major");
  auto spans = metrics->take_pause_spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].begin_ns, 3000U);
  EXPECT_EQ(spans[0].end_ns, 4000U);
  EXPECT_EQ(spans[0].group, "server");
  EXPECT_EQ(spans[0].kind, "major");
  EXPECT_FALSE(spans[0].verdict.empty());
  EXPECT_TRUE(metrics->take_pause_spans().empty());
  for (std::uint64_t at = 10'000; at < 210'000; at += 2'000) play(fmt::format("{} >major {} <major", at, at + 1'500));
  EXPECT_EQ(metrics->take_pause_spans().size(), PauseSpans::per_minute - 1);
  EXPECT_EQ(value("rtev_bpf_pause_spans_dropped"), 100 - (static_cast<std::int64_t>(PauseSpans::per_minute) - 1));
}

TEST_F(MetricsTest, NamesOfGroupsArePrintable) {
  for (const std::string& hostile : hostile_strings()) {
    ProcessInfo info = World::default_info();
    info.exe.clear();
    info.comm = hostile;
    info.pid = 77;
    process(1, ProcessAction::exec, world.registry.add_process(std::move(info)));
  }
  for (const auto& [series, amount] : collected().values)
    EXPECT_TRUE(std::ranges::none_of(series, [](unsigned char c) { return c < ' ' || c == 0x7f; })) << series;
}

TEST_F(MetricsTest, ALateEventOfAForgottenProcessAddsNone) {
  process(1, ProcessAction::exec);
  process(2, ProcessAction::exit);
  world.registry.process(world.process).pid = 0;  // as the registry forgets it
  play("10 >minor 20 <minor");
  count(30, "minor_allocated", 1);
  EXPECT_EQ(value("ocaml_processes{group=server}"), 0);
  EXPECT_EQ(value("ocaml_domains{group=server}"), 0);
}

TEST_F(MetricsTest, ALateEventOfAnEndedProcessIsCountedInItsGroup) {
  process(1, ProcessAction::exec);
  process(2, ProcessAction::exit);
  play("10 >minor 20 <minor");
  count(30, "minor_allocated", 1);
  count(40, "major_heap_pool_words", 100);
  EXPECT_EQ(value("ocaml_processes{group=server}"), 0);
  EXPECT_EQ(value("ocaml_domains{group=server}"), 0);
  EXPECT_EQ(value("ocaml_process_exits{group=server,reason=exit}"), 1);
  EXPECT_EQ(value("ocaml_gc_minor_collections{group=server}"), 1);
  EXPECT_EQ(histogram("ocaml_gc_pause_duration{group=server,kind=minor}").count(), 1U);
}

}  // namespace
}  // namespace rtev::test
