// SPDX-License-Identifier: MIT
// What `diff` says of made-up recordings: of the same program no change, and of prepared changes which they are.
#include <nlohmann/json.hpp>

#include "base/utf8.hpp"
#include "support/files.hpp"
#include "unit/analysis/diff/diff_fixture.hpp"

namespace rtev::test {
namespace {

using testing::DoubleNear, testing::ElementsAre, testing::HasSubstr;

TEST_F(DiffTest, TheSameProgramHasNotChanged) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const DiffReport report =
        diff({.seed = 2 * seed, .function = "Web.handle"}, {.seed = 2 * seed + 1, .function = "Web.handle"});
    EXPECT_EQ(program_in(report).verdict(), "same") << diff_text(report);
    EXPECT_EQ(report.regression(), "");
  }
}

TEST_F(DiffTest, WhatARecordingLeftOutIsNotOnlyInTheOther) {
  RecordedRun a, b;
  a.not_recorded.selection = "--events switch";
  a.not_recorded.kinds.set(static_cast<std::size_t>(EventKind::process));
  b.programs.resize(2);
  b.programs[0].name = "one";
  b.programs[1].name = "two";
  const DiffReport report = compare(a, b, {});
  EXPECT_THAT(diff_text(report),
              HasSubstr("only in B: one, two; unknown of A, which did not record starts and ends of processes\n"));
  EXPECT_EQ(nlohmann::json::parse(diff_json(report))["a"]["not_recorded"], nlohmann::json{"process"});
}

TEST_F(DiffTest, FiguresAreThoseOfTheRecording) {
  const DiffProgram program = program_in(diff({.wait_us = 500}, {.wait_us = 500}));
  EXPECT_THAT(figure(program, "pause_p50").a, DoubleNear(200e3, 5e3));
  EXPECT_THAT(figure(program, "gc_share").a, DoubleNear(0.02, 0.001));
  EXPECT_THAT(figure(program, "allocated").a, DoubleNear(100e6, 2e6));
  EXPECT_THAT(figure(program, "promoted").a, DoubleNear(5e6, 0.1e6));
  EXPECT_THAT(figure(program, "promoted_share").a, DoubleNear(0.05, 0.001));
  EXPECT_THAT(figure(program, "minor_collections").a, DoubleNear(100, 2));
  EXPECT_THAT(figure(program, "heap").a, DoubleNear(8e6, 0.1e6));
  EXPECT_THAT(figure(program, "span_p50:request").a, DoubleNear(1300e3, 20e3));
  EXPECT_THAT(figure(program, "span_rate:request").a, DoubleNear(100, 2));
  EXPECT_THAT(figure(program, "cpu_wait").a, DoubleNear(0.05, 0.003));
  EXPECT_THAT(figure(program, "cpus").a, DoubleNear(0.21, 0.01));
  EXPECT_THAT(figure(program, "domains").a, DoubleNear(1, 0.001));
  EXPECT_THAT(figure(program, "phase:minor").a, DoubleNear(800e-6, 20e-6)) << "8 of 10,000 µs";
  EXPECT_THAT(figure(program, "phase:stw_leader").a, DoubleNear(0.0192, 0.001)) << "without the phase inside";
  EXPECT_GE(program.a.slices, 20u);
  EXPECT_LT(program.a.slices, 41u);
  EXPECT_EQ(program.a.processes, 1u);
}

/// Pauses are shorter in B, and what the runtime does to begin them takes half of the CPU time.
TEST_F(DiffTest, CpuTimeInTheGcIsThatOfSamplesWhereBothHaveThem) {
  const ServerRun a{.pause_us = 400, .wait_us = 100, .function = "Server.render"};
  const ServerRun b{.seed = 2, .pause_us = 100, .wait_us = 100, .function = "caml_try_run_on_all_domains"};
  const DiffProgram program = program_in(diff(a, b));
  EXPECT_EQ(figure(program, "gc_sample_share").verdict, DiffVerdict::more);
  EXPECT_THAT(figure(program, "gc_sample_share").b, DoubleNear(0.5, 0.05));
  EXPECT_TRUE(std::ranges::none_of(program.figures, [](const DiffFigure& of) { return of.id == "gc_cpu_share"; }));
  EXPECT_EQ(figure(program_in(diff(a, {.seed = 2})), "gc_cpu_share").name, "CPU time in phases of the GC");
}

TEST_F(DiffTest, PreparedChangesAreNamedFirst) {
  const ServerRun before{.wait_us = 100};
  const struct {
    ServerRun after;
    std::string_view verdict, symptom, cause;
  } cases[] = {
      {{.seed = 2, .allocated = 2'000'000, .wait_us = 100}, "worse", "", "allocated"},
      {{.seed = 2, .full_major_every = 20, .wait_us = 100}, "worse", "pause_longest", "calls_full_major"},
      {{.seed = 2, .wait_us = 3000}, "worse", "span_p50:request", "cpu_wait"},
      {{.seed = 2, .pause_us = 400, .wait_us = 100}, "worse", "gc_share", ""},
      {{.seed = 2, .wait_us = 100, .heap_words = 2'000'000}, "worse", "heap", ""},
      {{.seed = 2, .pause_us = 100, .wait_us = 100}, "better", "gc_share", ""},
  };
  for (const auto& expected : cases) {
    const DiffReport report = diff(before, expected.after);
    const DiffProgram program = program_in(report);
    SCOPED_TRACE(diff_text(report));
    EXPECT_EQ(program.verdict(), expected.verdict);
    if (!expected.symptom.empty()) {
      EXPECT_EQ(to_string(figure(program, expected.symptom).verdict), expected.verdict);
    }
    EXPECT_EQ(first(program, DiffRole::symptom).empty(), expected.symptom.empty());
    EXPECT_EQ(first(program, DiffRole::cause), expected.cause);
    // That somebody else had the CPU fails no build.
    EXPECT_EQ(report.regression().empty(), expected.verdict == "better" || expected.cause == "cpu_wait");
    EXPECT_EQ(program.has_other_load, expected.cause == "cpu_wait");
  }
}

TEST_F(DiffTest, OtherLoadHidesNoRegressionThatItDoesNotExplain) {
  const DiffReport report = diff({.wait_us = 100}, {.seed = 2, .wait_us = 1000, .heap_words = 2'000'000});
  EXPECT_TRUE(program_in(report).has_other_load) << diff_text(report);
  EXPECT_THAT(diff_text(report), HasSubstr("CPUs that others had"));
  EXPECT_NE(report.regression(), "");
}

TEST_F(DiffTest, MoreCpuTimeIsWorse) {
  const DiffReport report = diff({}, {.seed = 2, .own_us = 500});
  const DiffProgram program = program_in(report);
  EXPECT_EQ(figure(program, "cpus").role, DiffRole::symptom);
  EXPECT_EQ(figure(program, "cpus").verdict, DiffVerdict::worse) << diff_text(report);
  EXPECT_EQ(program.verdict(), "worse");
  EXPECT_NE(report.regression(), "");
}

TEST_F(DiffTest, SmallChangesAreSaidToBeSmall) {
  RecordedRun a = record({}), b = record({.seed = 2, .allocated = 1'200'000});
  const DiffReport report = compare(a, b, {.min_change = 0.5});
  EXPECT_EQ(figure(program_in(report), "allocated").verdict, DiffVerdict::small);
  EXPECT_EQ(program_in(report).verdict(), "same");
  EXPECT_THAT(diff_text(report), HasSubstr("only small changes"));
}

TEST_F(DiffTest, TheMinorHeapIsASetting) {
  const DiffProgram program =
      program_in(diff({.allocated = (256 << 10) * 8 * 10 / 11}, {.seed = 2, .allocated = (32 << 10) * 8 * 10 / 11}));
  ASSERT_EQ(program.settings.size(), 1u);
  EXPECT_EQ(program.settings[0].a, "256k words");
  EXPECT_EQ(program.settings[0].b, "32k words");
}

TEST_F(DiffTest, FunctionsThatTakeMoreOfTheCpuAreNamed) {
  const DiffProgram program = program_in(diff({.function = "Web.parse"}, {.seed = 2, .function = "Web.print"}));
  EXPECT_EQ(figure(program, "cpu:Web.parse").verdict, DiffVerdict::less);
  EXPECT_EQ(figure(program, "cpu:Web.print").verdict, DiffVerdict::more);
  EXPECT_THAT(figure(program, "cpu:Web.print").b, DoubleNear(0.5, 0.05));
  EXPECT_EQ(figure(program, "cpu:Server.serve").verdict, DiffVerdict::same);
  EXPECT_EQ(program.verdict(), "changed");
}

TEST_F(DiffTest, OneProgramInEachIsComparedWhateverItsName) {
  const DiffReport report = diff({.name = "server-1.2"}, {.seed = 2, .name = "server-1.3"});
  EXPECT_EQ(program_in(report).name_b, "server-1.3");
  EXPECT_THAT(diff_text(report), HasSubstr("server-1.2 in A, server-1.3 in B: no significant change"));
}

TEST_F(DiffTest, ProgramsInOneRecordingOnlyAreNamed) {
  RecordedRun a = record({}), b = record({.seed = 2});
  a.programs.push_back(record({.name = "old"}).programs.front());
  b.programs.push_back(record({.name = "new\033"}).programs.front());
  const DiffReport report = compare(a, b, {});
  EXPECT_EQ(report.programs.size(), 1u);
  EXPECT_THAT(report.only_a, ElementsAre("old"));
  EXPECT_THAT(diff_text(report), HasSubstr("only in A: old\nonly in B: new\\x1B\n"));
}

TEST_F(DiffTest, AProgramWithEventsOffInOneRecordingIsNotSaidToBeInTheOtherOnly) {
  RecordedRun a = record({.name = "server"}), b = record({.seed = 2, .name = "client"});
  b.events_off = {"server", "old"};
  const DiffReport report = compare(a, b, {});
  EXPECT_THAT(report.programs, ::testing::IsEmpty()) << "server and client are not one program under two names";
  EXPECT_THAT(report.off_in_b, ElementsAre("server"));
  EXPECT_THAT(diff_text(report), HasSubstr("only A has events of server; it ran in B with events off\n"
                                           "only in B: client\n"));
}

TEST_F(DiffTest, ProgramsAreNamedByTheirFilesWhereTheKernelCutsTheName) {
  Registry registry;
  std::int32_t pid = 0;
  const auto add = [&](const char* comm, const char* exe, RingState ring) {
    ProcessInfo info;
    info.pid = ++pid;
    info.comm = comm;
    info.exe = exe;
    info.ring = ring;
    return registry.add_process(std::move(info));
  };
  RecordedRunSink sink;
  Events events(0);
  for (const ProcessIndex process : {add("binarytrees5_mu", "/b/binarytrees5_multicore.exe", RingState::active),
                                     add("serve", "/b/server", RingState::active)})
    events.add_record(start, EventKind::process, ProcessRecord{.process = process, .peer = 0, .detail = 0},
                      static_cast<std::uint16_t>(ProcessAction::ring));
  add("silent", "/b/silent", RingState::none);
  sink.consume(events.batch(), registry);
  sink.summary({}, registry);
  const RecordedRun run = sink.take();
  ASSERT_EQ(run.programs.size(), 2u);
  EXPECT_EQ(run.programs[0].name, "binarytrees5_multicore.exe");
  EXPECT_EQ(run.programs[1].name, "serve") << "it renamed itself";
  EXPECT_TRUE(run.events_off.contains("silent"));
}

TEST_F(DiffTest, ShortRunsCannotBeCompared) {
  const DiffReport report = diff({}, {.seconds = 0});
  EXPECT_EQ(program_in(report).verdict(), "not_compared");
  EXPECT_THAT(diff_text(report), HasSubstr("not compared: it ran too short in B"));
  EXPECT_EQ(report.regression(), "nothing was compared");
}

TEST_F(DiffTest, AProcessThatEndedBeforeItsEventsAreReadIsCounted) {
  World world;
  RecordedRunSink sink;
  world.registry.process(world.process).ended = true;
  const ProcessRecord record{.process = world.process, .peer = 0, .detail = 0};
  const auto process_event = [&](std::uint64_t time, ProcessAction action) {
    Events events(0);
    events.add_record(time, EventKind::process, record, static_cast<std::uint16_t>(action));
    sink.consume(events.batch(), world.registry);
  };
  process_event(start, ProcessAction::ring);
  process_event(start + ms, ProcessAction::exit);
  process_event(start + ms, ProcessAction::ring);  // late
  sink.summary({}, world.registry);
  const RecordedRun run = sink.take();
  ASSERT_EQ(run.programs.size(), 1u);
  EXPECT_EQ(run.programs.front().processes, 1u);
}

TEST_F(DiffTest, SlicesWithLostEventsAreLeftOut) {
  const DiffProgram some = program_in(diff({}, {.seed = 2, .lost = 0.2}));
  EXPECT_THAT(some.b.lossy_share, DoubleNear(0.2, 0.05));
  EXPECT_EQ(some.verdict(), "same");
  const DiffReport much = diff({}, {.seed = 2, .lost = 0.8});
  EXPECT_EQ(program_in(much).verdict(), "not_compared");
  EXPECT_THAT(diff_text(much), HasSubstr("not compared: B lacks events in"));
}

TEST_F(DiffTest, WithoutSchedulerEventsThereAreNoFiguresOfCpus) {
  const DiffProgram program = program_in(diff({.has_scheduler = false}, {.seed = 2, .has_scheduler = false}));
  EXPECT_EQ(std::ranges::find(program.figures, "cpus", &DiffFigure::id), program.figures.end());
  EXPECT_EQ(program.verdict(), "same");
}

TEST_F(DiffTest, LongAndShortRecordingsHaveSlicesOfOneLength) {
  const DiffReport report = diff({.seconds = 400}, {.seed = 2, .seconds = 15});
  const DiffProgram program = program_in(report);
  EXPECT_GE(program.b.slices, 10u) << "the slices of the long one cannot be shorter";
  EXPECT_GT(program.a.slices, 20 * program.b.slices);
  EXPECT_EQ(program.verdict(), "same") << diff_text(report);
}

TEST_F(DiffTest, HostileNamesAndTimesAreHarmless) {
  for (const std::string& name : hostile_strings()) {
    ProcessInfo info = World::default_info();
    info.comm = info.exe = name;
    World world(std::move(info));
    world.user_names = {{1, name}};
    RecordedRunSink sink;
    play({.seconds = 2, .function = name, .name = "server"}, world, sink);
    const RecordedRun run = sink.take();
    const DiffReport report = compare(run, run, {.full = true});
    for (const char c : diff_text(report))
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << static_cast<int>(c);
    EXPECT_FALSE(nlohmann::json::parse(diff_json(report), nullptr, false).is_discarded());
  }
  World world;
  RecordedRunSink sink;
  sink.header({.start_ns = 100});
  for (const std::uint64_t time : {std::uint64_t{200}, std::uint64_t{1}, UINT64_MAX, std::uint64_t{300}}) {
    sink.consume(Events(world.slot)
                     .add(time, EventKind::begin, phase_minor)
                     .add_record(time, EventKind::lost, Loss{.words = UINT64_MAX, .from_ns = UINT64_MAX, .to_ns = 0})
                     .add(time, EventKind::counter, counter("major_heap_words"), UINT64_MAX)
                     .add(time, EventKind::counter, counter("minor_allocated"), UINT64_MAX)
                     .add(time / 2, EventKind::end, phase_minor)
                     .batch(),
                 world.registry);
  }
  sink.summary({.end_ns = 5}, world.registry);
  const RecordedRun run = sink.take();
  EXPECT_EQ(program_in(compare(run, run, {})).count(DiffVerdict::worse), 0u);
}

TEST_F(DiffTest, ProgramsAndSpansAreBounded) {
  World world;
  RecordedRunSink sink;
  sink.header({.start_ns = start});
  for (std::uint16_t i = 0; i < 100; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = 5000 + i;
    info.comm = "program" + std::to_string(i);
    info.exe.clear();
    const std::uint32_t slot = world.add_ring(world.registry.add_process(std::move(info)));
    world.user_names[i] = "span" + std::to_string(i);
    sink.consume(
        Events(slot).add(start + i, EventKind::user_begin, i).add(start + i + 1, EventKind::user_end, i).batch(),
        world.registry);
    sink.consume(
        Events(world.slot).add(start + i, EventKind::user_begin, i).add(start + i + 1, EventKind::user_end, i).batch(),
        world.registry);
  }
  sink.summary({.end_ns = start + second}, world.registry);
  const RecordedRun run = sink.take();
  EXPECT_EQ(run.programs.size(), RecordedRunSink::max_programs);
  EXPECT_EQ(run.processes_left_out, 100 + 1 - RecordedRunSink::max_programs);
  for (const RecordedProgram& program : run.programs) EXPECT_LE(program.spans.size(), RecordedRunSink::max_spans);
}

/// One screen, of lines that fit it.
void expect_fits(const std::string& text) {
  EXPECT_LE(std::ranges::count(text, '\n'), 24) << text;
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 100u) << text;
}

TEST_F(DiffTest, Texts) {
  const ServerRun a{.allocated = (256 << 10) * 8 * 10 / 11, .wait_us = 100, .function = "Web.parse"};
  ServerRun b = a;
  b.seed = 2;
  b.full_major_every = 20;
  b.function = "Web.print";
  const std::string worse = diff_text(diff(a, b));
  expect_fits(worse);
  EXPECT_EQ(worse, golden("analysis/golden/diff.txt"));
  EXPECT_EQ(diff_text(diff(a, b, true)), golden("analysis/golden/diff_full.txt"));
  b = a;
  b.seed = 2;
  EXPECT_EQ(diff_text(diff(a, b)), golden("analysis/golden/diff_same.txt"));
}

TEST_F(DiffTest, WhatWasComparedIsSaidOfAllPrograms) {
  RecordedRun a = record({}), b = record({.seed = 2});
  for (RecordedRun* const run : {&a, &b}) {
    RecordedProgram worker = run->programs.front();
    worker.name = "worker";
    worker.processes = 3;
    run->programs.push_back(worker);
  }
  EXPECT_THAT(diff_text(compare(a, b, {})),
              HasSubstr("A: a recording, 20.0s, 4 processes of the 2 programs in both, longest pause"));
  b.programs.pop_back();
  const std::string of_one = diff_text(compare(a, b, {}));
  EXPECT_THAT(of_one, HasSubstr("A: a recording, 20.0s, 1 process of server, longest pause"));
  EXPECT_THAT(of_one, HasSubstr("B: a recording, 20.0s, 1 process, longest pause")) << "it has no others";
}

TEST_F(DiffTest, HowMuchAGapOfProbesLosesIsUnknown) {
  RecordedRun a = record({});
  a.programs.front().lost.gaps = 2;
  const DiffReport report = compare(a, record({.seed = 2}), {});
  const auto program = nlohmann::json::parse(diff_json(report))["programs"][0];
  EXPECT_EQ(program["a"]["lost_words"], nullptr);
  EXPECT_EQ(program["b"]["lost_words"], 0);
  EXPECT_THAT(diff_text(report), HasSubstr("warning: A lacks events of server: tracing by probes paused 2 times;"));
}

TEST_F(DiffTest, SeveralProgramsFitAScreen) {
  RecordedRun a, b;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "a-program-with-a-rather-long-name-" + std::to_string(i);
    a.programs.push_back(record({.seed = 3, .name = name}).programs.front());
    b.programs.push_back(
        record({.seed = 4, .pause_us = i == 5 ? 2000u : 200u, .wait_us = i == 3 ? 900u : 0u, .name = name})
            .programs.front());
  }
  for (RecordedRun* const run : {&a, &b}) {
    run->slice_ns = record({}).slice_ns;
    run->scheduler_seen = true;
    run->start_ns = start;
    run->end_ns = start + 20 * second;
  }
  const std::string text = diff_text(compare(a, b, {}));
  expect_fits(text);
  EXPECT_THAT(text, testing::StartsWith("a-program-with-a-rather-long-name-5: B is worse than A"));
}

TEST_F(DiffTest, Json) {
  const auto report = nlohmann::json::parse(diff_json(diff({}, {.seed = 2, .full_major_every = 20})));
  EXPECT_EQ(report["type"], "diff");
  EXPECT_EQ(report["programs"][0]["verdict"], "worse");
  EXPECT_EQ(report["a"]["file"], "before.fxt");
  EXPECT_TRUE(report["regression"].is_string());
  const auto& first = report["programs"][0]["figures"][0];
  EXPECT_EQ(first["role"], "symptom");
  EXPECT_EQ(first["verdict"], "worse");
  EXPECT_LE(first["p"].get<double>(), 0.01);
}

}  // namespace
}  // namespace rtev::test
