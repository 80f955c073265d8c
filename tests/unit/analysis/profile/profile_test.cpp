// SPDX-License-Identifier: MIT
// Which samples count, for which function, and for which domain, phase or span.
#include <gmock/gmock.h>

#include <string>

#include "formats/profile/flame_tree.hpp"
#include "unit/analysis/profile/profile_fixture.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::SizeIs;

TEST_F(ProfileTest, SelfAndTotalByFunction) {
  samples(100, {"main", "App.run:1", "App.parse:7"}, 3);
  samples(200, {"main", "App.run:2"}, 1);
  const ProfileReport found = report();
  EXPECT_THAT(functions_of(found), ElementsAre("App.parse 3/3", "App.run 1/4", "main 0/4"));
  EXPECT_EQ(found.all[0], (SampleValue{.samples = 4, .weight = 4 * period}));
  EXPECT_EQ(found.unit, WeightUnit::ns);
}

TEST_F(ProfileTest, ARecursiveFunctionCountsOnceAStack) {
  samples(100, {"main", "Fib.fib:3", "Fib.fib:4", "Fib.fib:3"}, 2);
  EXPECT_THAT(functions_of(report()), ElementsAre("Fib.fib 2/2", "main 0/2"));
}

TEST_F(ProfileTest, ThePlaceOfAFunctionIsItsHottestLine) {
  samples(100, {"App.run:1"}, 1);
  samples(200, {"App.run:2"}, 3);
  const ProfileReport found = report();
  EXPECT_EQ(found.tree.places()[found.functions.at(0).place].line, 2u);
  make({.by = ProfileBy::line});
  samples(100, {"App.run:1"}, 1);
  samples(200, {"App.run:2"}, 3);
  EXPECT_THAT(report().lines, SizeIs(2));
}

TEST_F(ProfileTest, StacksMayBecomeKnownAfterTheirSamples) {
  StackTable& stacks = world.registry.stacks();
  const StackIndex later = stacks.reserve();
  sample(100, a_sample(later));
  samples(200, {"App.run:1"}, 1);
  stacks.set_reserved(later, stack({"App.run:1"}));
  const ProfileReport found = report();
  EXPECT_THAT(functions_of(found), ElementsAre("App.run 2/2"));
  EXPECT_THAT(found.tree.nodes(), SizeIs(2)) << "the same path is one node";
  EXPECT_EQ(found.incomplete, 0u);
}

TEST_F(ProfileTest, StacksThatNeverBecameKnownAreIncomplete) {
  sample(100, a_sample(world.registry.stacks().reserve()));
  samples(200, {"[cut]", "App.run:1"}, 2);
  const ProfileReport found = report();
  EXPECT_EQ(found.incomplete, 3u);
  EXPECT_EQ(found.cut, 2u);
  EXPECT_THAT(functions_of(found), ElementsAre("App.run 2/2", "[unknown] 1/1", "[cut] 0/2"));
}

TEST_F(ProfileTest, WhatTheGcDoesBelongsToTheFunctionItRunsIn) {
  play("90 >major");
  samples(100, {"main", "App.run:1", "caml_call_gc", "mark"}, 3);
  play("200 <major");
  samples(210, {"main", "App.run:1"}, 1);
  const ProfileReport found = report();
  EXPECT_EQ(functions_of(found).front(), "App.run 4/4");
  EXPECT_EQ(found.functions.at(0).gc.samples, 3u);
  EXPECT_EQ(found.gc.samples, 3u);
  EXPECT_THAT(functions_of(found), testing::Contains("[GC] 0/3"));
}

TEST_F(ProfileTest, TheGcOfAThreadWithoutOCamlFramesIsItsOwn) {
  play("90 >stw_handler@1");
  Sample backup = a_sample(stack({"clone", "backup_thread_func"}), 1);
  backup.role = ThreadRole::backup;
  backup.holds_lock = false;
  sample(100, backup);
  EXPECT_THAT(functions_of(report()), ElementsAre("[GC] 1/1"));
}

TEST_F(ProfileTest, AThreadWithoutTheLockIsNotInTheGcOfItsDomain) {
  play("90 >major");
  Sample other = a_sample(stack({"main", "compute"}));
  other.holds_lock = false;
  sample(100, other);
  EXPECT_EQ(report().gc.samples, 0u);
}

TEST_F(ProfileTest, SleepsInTheGcAreThoseOfThreadsWithTheLock) {
  make({.kind = SampleKind::off_cpu});
  play("100 >minor");
  Sample waits = a_sample(stack({"App.run:1", "caml_call_gc", "futex"}));
  sample(110, waits, SampleKind::off_cpu);
  waits.holds_lock = false;  // the backup thread collects
  waits.stack = stack({"App.wait:2", "caml_ml_mutex_lock", "futex"});
  sample(120, waits, SampleKind::off_cpu);
  const ProfileReport found = report();
  EXPECT_EQ(found.gc.samples, 1u);
  EXPECT_THAT(profile_text(found), AllOf(HasSubstr("[GC]"), HasSubstr("caml_ml_mutex_lock")));
}

/// The write barrier of caml_modify marks what a field had before.
TEST_F(ProfileTest, MarkingIsTheGcs) {
  samples(100, {"App.run:1", "caml_modify", "caml_darken", "realloc_mark_stack", "caml_addrmap_insert_pos"}, 2);
  samples(200, {"App.run:1", "caml_modify"}, 3);
  EXPECT_EQ(report().gc.samples, 2u);
}

TEST_F(ProfileTest, BytecodeThatTheGcCallsIsTheProgram) {
  samples(100, {"caml_interprete", "[bytecode]", "caml_alloc_small_dispatch", "caml_minor_collection"}, 2);
  samples(200, {"[bytecode]", "caml_alloc_small_dispatch", "caml_final_do_calls", "[bytecode]", "caml_hash"}, 3);
  EXPECT_EQ(report().gc.samples, 2u);
}

TEST_F(ProfileTest, InlinedCodeHasARowForEachLine) {
  samples(100, {"Main.run:7", "(inlined):6"}, 2);
  samples(200, {"Main.run:7", "(inlined):9"}, 1);
  const ProfileReport found = report();
  EXPECT_THAT(functions_of(found), testing::IsSupersetOf({"(inlined) 2/2", "(inlined) 1/1"}));
  EXPECT_EQ(function_label(found.tree.functions()[found.tree.places()[found.hottest.place].function]),
            "(inlined) (inlined).ml:6");
}

/// Three domains on two CPUs try for long to stop each other, and no phase is open.
TEST_F(ProfileTest, WhatTriesToStartACollectionIsInTheGc) {
  const std::vector<std::string> tries{"main",
                                       "App.run:1",
                                       "caml_call_gc",
                                       "caml_poll_gc_work",
                                       "caml_empty_minor_heaps_once",
                                       "caml_try_run_on_all_domains_with_spin_work"};
  samples(100, tries, 6);
  samples(200, {"main", "App.run:1"}, 3);
  // Another thread of the domain takes its turn.
  samples(300, {"main", "App.run:1", "caml_poll_gc_work", "caml_thread_yield", "futex"}, 1);
  // A finaliser is the program's.
  samples(400, {"main", "App.run:1", "caml_poll_gc_work", "App.finalise:9", "caml_hash"}, 1);
  const ProfileReport found = report();
  EXPECT_EQ(found.gc.samples, 6u);
  EXPECT_THAT(functions_of(found), testing::Contains("[GC] 0/6"));
  EXPECT_THAT(profile_text(found), HasSubstr("55% of it in the GC"));
  make({.by = ProfileBy::gc_phase});
  samples(100, tries, 6);
  EXPECT_EQ(report().groups.at(0).name, "between phases");
}

/// The leaf with most time is a small part of what App.handle does.
TEST_F(ProfileTest, TheFunctionBelowWhichMostTimeIsComesFirst) {
  for (const std::string leaf : {"App.parse:10", "App.check:20", "App.render:30", "App.send:40"})
    samples(100, {"caml_start_program", "Main.entry:1", "Stdlib.List.iter:99", "App.handle:5", leaf}, 20);
  samples(100, {"caml_start_program", "Main.entry:1", "Stdlib.List.iter:99", "App.handle:5", "App.parse:10"}, 15);
  samples(100, {"caml_start_program", "Main.entry:1"}, 5);
  EXPECT_THAT(profile_text(report()),
              testing::StartsWith(
                  "95% of the CPU time is in App.handle app.ml:5 and what it calls, called from Main.entry main.ml:1;\n"
                  "35% is in App.parse app.ml:10, called from App.handle app.ml:5\n"));
}

TEST_F(ProfileTest, OnlySamplesOfTheKindCount) {
  sample(100, a_sample(stack({"App.run:1"})), SampleKind::off_cpu);
  EXPECT_EQ(report().all[0].samples, 0u);
  EXPECT_THAT(profile_text(report()), HasSubstr("rtev-bpf profile --off-cpu shows them"));
  make({.kind = SampleKind::off_cpu});
  sample(100, a_sample(stack({"App.run:1"})), SampleKind::off_cpu);
  EXPECT_EQ(report().all[0].samples, 1u);
}

TEST_F(ProfileTest, SleepsOfTheRuntimesOwnThreadsDoNotCount) {
  make({.kind = SampleKind::off_cpu, .min_weight = period});
  Sample sleep = a_sample(stack({"App.run:1"}));
  sample(100, sleep, SampleKind::off_cpu);
  sleep.weight = period - 1;
  sample(110, sleep, SampleKind::off_cpu);
  sleep.weight = period;
  for (const ThreadRole role : {ThreadRole::backup, ThreadRole::tick}) {
    sleep.role = role;
    sample(120, sleep, SampleKind::off_cpu);
  }
  EXPECT_EQ(report().all[0].samples, 1u) << "nor do shorter ones";
}

TEST_F(ProfileTest, WithoutAWeightSamplesCount) {
  Sample weightless = a_sample(stack({"App.run:1"}));
  weightless.weight = 0;
  sample(100, weightless);
  const ProfileReport found = report();
  EXPECT_EQ(found.unit, WeightUnit::samples);
  EXPECT_EQ(found.all[0].weight, 1u);
}

TEST_F(ProfileTest, AnEmptyStackIsUnknown) {
  sample(100, a_sample(0));
  EXPECT_THAT(functions_of(report()), ElementsAre("[unknown] 1/1"));
}

TEST_F(ProfileTest, SpansEndWithTheirProcess) {
  world.user_names = {{1, "request"}};
  make({.by = ProfileBy::user_span});
  play("90 [1");
  feed(Events(0).add_record(95, EventKind::process, ProcessRecord{world.process, 0, 0},
                            static_cast<std::uint16_t>(ProcessAction::exit)));
  samples(100, {"App.run:1"}, 1);
  EXPECT_EQ(report().groups.at(0).name, "outside of user spans");
}

TEST_F(ProfileTest, DroppedSamplesOfAnotherKindDoNotCount) {
  feed(Events(0).add_record(50, EventKind::lost, Loss{.words = 30, .from_ns = 40, .to_ns = 50},
                            static_cast<std::uint16_t>(LossReason::sleep_samples), sample_stream));
  samples(100, {"App.run:1"});
  EXPECT_THAT(profile_text(report()), testing::Not(HasSubstr("dropped")));
}

TEST_F(ProfileTest, DroppedAndUnknownSamplesAreCounted) {
  feed(Events(0).add_record(50, EventKind::lost, Loss{.words = 30, .from_ns = 40, .to_ns = 50},
                            static_cast<std::uint16_t>(LossReason::samples), sample_stream));
  Sample unknown = a_sample(stack({"App.run:1"}));
  unknown.process = 0;
  sample(100, unknown);
  unknown.process = 77;
  sample(110, unknown);
  const ProfileReport found = report();
  EXPECT_EQ(found.dropped, 30u);
  EXPECT_EQ(found.unknown_process, 2u);
  const std::string text = profile_text(found);
  EXPECT_THAT(text, HasSubstr("warning: 94% of 32 samples dropped"));
  EXPECT_THAT(text, HasSubstr("2 samples of unknown processes"));
}

TEST_F(ProfileTest, ByDomainAndProcess) {
  make({.by = ProfileBy::domain});
  const StackIndex run = stack({"App.run:1"});
  sample(100, a_sample(run, 1));
  sample(101, a_sample(run, 1));
  sample(102, a_sample(run, -1));
  const ProfileReport found = report();
  ASSERT_THAT(found.groups, SizeIs(2));
  EXPECT_EQ(found.groups[0].name, "server/4242 domain 1");
  EXPECT_EQ(found.groups[0].value.samples, 2u);
  EXPECT_EQ(found.groups[1].name, "server/4242, no domain");
  make({.by = ProfileBy::process});
  sample(100, a_sample(run, 1));
  EXPECT_EQ(report().groups.at(0).name, "server/4242");
}

TEST_F(ProfileTest, ByProgram) {
  make({.by = ProfileBy::program});
  const StackIndex run = stack({"App.run:1"});
  const auto sample_of = [&](std::int32_t pid, const char* exe) {
    ProcessInfo info = World::default_info();
    info.pid = pid;
    info.exe = exe;
    Sample taken = a_sample(run);
    taken.process = world.registry.add_process(info);
    sample(100, taken);
  };
  sample_of(1, "/bin/cc");
  for (std::int32_t pid = 2; pid <= 8; ++pid) sample_of(pid, "/bin/server");
  const ProfileReport found = report();
  ASSERT_THAT(found.groups, SizeIs(2));
  EXPECT_EQ(found.groups[0].name, "server, 7 processes");
  EXPECT_EQ(found.groups[0].value.samples, 7u);
  EXPECT_EQ(found.groups[1].name, "cc/server/1");
  EXPECT_THAT(profile_text(found), HasSubstr("8 samples of 8 processes of 2 programs in "));
}

TEST_F(ProfileTest, ByPhase) {
  make({.by = ProfileBy::gc_phase});
  samples(50, {"App.run:1"}, 1);
  play("90 >major 95 >major_slice");
  samples(100, {"App.run:1", "mark"}, 3);
  play("200 <major_slice");
  samples(210, {"App.run:1", "mark"}, 2);
  play("300 <major 310 >domain_condition_wait");
  samples(320, {"App.run:1"}, 2);
  const ProfileReport found = report();
  ASSERT_THAT(found.groups, SizeIs(3));
  EXPECT_EQ(found.groups[0].name, "major_slice");
  EXPECT_EQ(found.groups[0].value.samples, 3u);
  EXPECT_EQ(found.groups[1].name, "outside of the GC");
  EXPECT_EQ(found.groups[1].value.samples, 3u);
  EXPECT_EQ(found.groups[2].name, "major");
}

TEST_F(ProfileTest, ByUserSpan) {
  world.user_names = {{1, "request"}, {2, "query"}};
  make({.by = ProfileBy::user_span});
  play("90 [1");
  samples(100, {"App.run:1"}, 1);
  play("110 [2");
  samples(120, {"App.run:1"}, 2);
  sample(130, a_sample(stack({"App.run:1"}), 1));
  play("140 ]2 150 ]1");
  const ProfileReport found = report();
  ASSERT_THAT(found.groups, SizeIs(3));
  EXPECT_EQ(found.groups[0].name, "query");
  EXPECT_EQ(found.groups[0].value.samples, 2u);
}

TEST_F(ProfileTest, ByUserSpanOfTheFiberThatRuns) {
  world.user_names = {{5, "eio.fiber"}, {6, "eio.enter_span"}};
  make({.by = ProfileBy::user_span});
  feed(Events(world.slot)
           .add(10, EventKind::user_int, 5, 1)
           .add_bytes(20, EventKind::user_custom, "one", 6)
           .add(30, EventKind::user_int, 5, 2)
           .add_bytes(40, EventKind::user_custom, "two", 6)
           .add(50, EventKind::user_int, 5, 1));
  samples(100, {"App.run:1"}, 1);
  EXPECT_EQ(report().groups.at(0).name, "one");
}

TEST_F(ProfileTest, MemoryIsBounded) {
  make({.max_keys = 3});
  for (int line = 1; line <= 10; ++line) samples(100, {"App.run:" + std::to_string(line)}, 1);
  const ProfileReport found = report();
  EXPECT_EQ(found.without_room, 7u);
  EXPECT_EQ(found.all[0].samples, 10u);
  EXPECT_THAT(profile_text(found), HasSubstr("7 samples counted without their stacks"));
}

TEST_F(ProfileTest, DamagedStacksEnd) {
  StackTable& stacks = world.registry.stacks();
  const FrameIndex frame = stacks.add_frame({.kind = FrameKind::ocaml, .function = "Loop.run"});
  ASSERT_TRUE(stacks.restore_stack(10, 11, frame) && stacks.restore_stack(11, 10, frame));
  ASSERT_TRUE(stacks.restore_stack(12, 12, 0));
  for (const StackIndex index : {10u, 11u, 12u, 9999u}) sample(100, a_sample(index));
  play("105 >major");
  for (const StackIndex index : {10u, 11u, 12u, 9999u}) sample(110, a_sample(index));
  const ProfileReport found = report();
  EXPECT_EQ(found.all[0].samples, 8u);
  EXPECT_FALSE(profile_text(found).empty());
}

TEST_F(ProfileTest, DeepStacksAreCutAtALimit) {
  StackTable& stacks = world.registry.stacks();
  const FrameIndex frames[2] = {stacks.add_frame({.kind = FrameKind::ocaml, .function = "A.a"}),
                                stacks.add_frame({.kind = FrameKind::ocaml, .function = "B.b"})};
  StackIndex index = 0;
  for (std::uint32_t depth = 0; depth < 3 * CallTree::max_depth; ++depth) {
    index = stacks.add_stack(index, frames[depth % 2]);
    if (depth % 1000 == 0) sample(100, a_sample(index));
  }
  sample(200, a_sample(index));
  const ProfileReport found = report();
  for (const CallTree::Node& node : found.tree.nodes()) EXPECT_LE(node.depth, CallTree::max_depth);
  EXPECT_EQ(functions_of(found).size(), 2u);
}

}  // namespace
}  // namespace rtev::test
