// SPDX-License-Identifier: MIT
// What the reports of statistics look like.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/files.hpp"
#include "support/json_members.hpp"
#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class StatsReportTest : public StatsTest {
 protected:
  std::string text(bool full = true) { return stats_text(stats.report(world.registry), full); }
  nlohmann::json json() { return nlohmann::json::parse(stats.report_json(world.registry)); }

  void run_two_domains() {
    stats.header({.version = "1.2.3", .start_ns = 1'000'000'000});
    world.user_names = {{1, "say \"hi\"\x1b[31m"}};
    process(1'000'000'000, ProcessAction::exec);
    life(1'000'000'000, Lifecycle::ring_start);
    change(1'200'000'000, thread(pid, 0), stranger());
    life(1'500'000'000, Lifecycle::domain_spawn, 1);
    begin(2'000'000'000, "stw_leader");
    count(2'010'000'000, "minor_allocated", 80'000'000);
    count(2'010'000'000, "minor_promoted", 800'000);
    span(2'000'000'000, 2'050'000'000, "minor");
    end(2'100'000'000, "stw_leader");
    begin(2'000'000'000, "stw_handler", 1);
    span(2'000'000'000, 2'050'000'000, "minor", 1);
    end(2'100'000'000, "stw_handler", 1);
    count(2'200'000'000, "major_allocated_words", 123'456);
    span(2'200'000'000, 2'300'000'000, "major_slice");
    count(2'300'000'000, "major_heap_words", 1'000'000);
    count(2'310'000'000, "major_heap_words", 900'000);
    count(2'310'000'000, "force_minor_make_vect", 1);
    span(2'400'000'000, 2'500'000'000, "explicit_gc_compact");
    feed(Events(world.slot).add(2'600'000'000, EventKind::user_unit, 1));
    life(3'500'000'000, Lifecycle::domain_terminate, 1);
    life(4'000'000'000, Lifecycle::domain_spawn, 1);
    life(5'000'000'000, Lifecycle::domain_terminate, 1);
    process(5'000'000'000, ProcessAction::exit, 0);
  }
};

TEST_F(StatsReportTest, TextOfNothing) {
  EXPECT_EQ(text(), "0 OCaml processes in 0ns\n");
}

TEST_F(StatsReportTest, TextHasFiguresInTheirUnits) {
  run_two_domains();
  EXPECT_EQ(text(), test::golden("analysis/golden/stats.txt"));
}

/// Words of a line that have at least two blanks between them.
std::vector<std::string> columns_of_line(const std::string& report, const std::string& label) {
  const std::size_t begin = report.find("\n  " + label + " ") + 3;
  std::string line = report.substr(begin, report.find('\n', begin) - begin);
  std::vector<std::string> columns;
  while (!line.empty()) {
    const std::size_t end = line.find("  ");
    columns.push_back(line.substr(0, end));
    line.erase(0, line.find_first_not_of(' ', std::min(end, line.size())));
  }
  return columns;
}

TEST_F(StatsReportTest, WideFiguresKeepTheirDistance) {
  constexpr std::uint64_t many = UINT64_MAX;
  life(100, Lifecycle::ring_start);
  life(100, Lifecycle::domain_spawn, 4095);
  for (const std::uint16_t domain : {std::uint16_t{0}, std::uint16_t{4095}}) {
    count(200, "minor_allocated", many, domain);
    count(200, "minor_promoted", many, domain);
    count(200, "major_allocated_words", many, domain);
    count(200, "major_heap_words", many, domain);
    for (int i = 0; i < 2000; ++i) begin(300, "major_slice", domain);
    lose(300, 400, many / 3, domain);
  }
  life(many / 2, Lifecycle::ring_stop);
  const std::string report = text();
  EXPECT_THAT(columns_of_line(report, "DOMAIN"), testing::SizeIs(10)) << report;
  EXPECT_THAT(columns_of_line(report, "4095"), testing::SizeIs(10)) << report;
  const std::string words = report.substr(report.find("\n\n  DOMAIN") + 2);
  EXPECT_THAT(columns_of_line(words.substr(words.find("\n  DOMAIN")), "DOMAIN"), testing::SizeIs(7)) << report;
  EXPECT_THAT(columns_of_line(words.substr(words.find("MINOR WORDS")), "4095"),
              testing::ElementsAre("4095", "2,305,843,009,213,693,951+", "2,305,843,009,213,693,951+",
                                   "18,446,744,073,709,551,615+", "0+", "2,005+", "6,148,914,691,236,517,205"))
      << report;
  EXPECT_THAT(columns_of_line(report, "words"), testing::SizeIs(4)) << report;
}

TEST_F(StatsReportTest, TextMarksLowerBounds) {
  life(100, Lifecycle::ring_start);
  span(200, 300, "major");
  lose(300, 400, 1234);
  life(1100, Lifecycle::ring_stop);
  EXPECT_THAT(text(), HasSubstr("\n  0              1.00µs         -     100ns+   10.00%+"));
  EXPECT_THAT(text(), HasSubstr("\n  + lower bound: 1,234 ring words were lost\n"));
  EXPECT_THAT(text(), HasSubstr("collections: 0+ minor, "));
}

TEST_F(StatsReportTest, TextSaysAllReasonsForLowerBounds) {
  lose(300, 400, 1);
  process(500, ProcessAction::pause);
  begin(600, "stw_leader");
  process(700, ProcessAction::resume);
  EXPECT_THAT(text(), HasSubstr("\n  + lower bound: 1 ring word was lost; the program paused its events; the end of "
                                "a pause was not\n    seen\n"));
}

TEST_F(StatsReportTest, WhatIsLostWhileProbesAreOffIsUnknown) {
  life(100, Lifecycle::ring_start);
  feed(Events(world.slot)
           .add_record(300, EventKind::lost, Loss{.words = 0, .from_ns = 200, .to_ns = 300},
                       static_cast<std::uint16_t>(LossReason::unprobed)));
  EXPECT_THAT(text(), HasSubstr("\n  + lower bound: tracing by probes paused\n"));
  EXPECT_THAT(json()["processes"][0],
              HasMembers(R"({"lower_bound":true,"because":["unprobed"],"losses":1,"lost_words":null})"_json));
  lose(300, 400, 7);
  EXPECT_THAT(text(), HasSubstr("\n  + lower bound: 7 ring words were lost; tracing by probes paused\n"));
  EXPECT_THAT(json()["processes"][0], HasMembers(R"({"lost_words":7})"_json));
}

TEST_F(StatsReportTest, TextOfSeveralProcessesEndsWithATotal) {
  span(100, 200, "major");
  const std::uint32_t other = world.add_ring(world.registry.add_process(World::default_info()));
  feed(Events(other).add(100, EventKind::begin, phase("major")).add(300, EventKind::end, phase("major")));
  const std::string report = text();
  EXPECT_THAT(report, HasSubstr("2 OCaml processes in 200ns\n"));
  EXPECT_THAT(report, HasSubstr("\nall processes\n"));
  EXPECT_THAT(report.substr(report.find("all processes")), HasSubstr("   400ns         -     300ns    75.00% "));
}

TEST_F(StatsReportTest, GcShareOfSeveralDomainsIsOfTheTimeOfAll) {
  for (const std::uint16_t domain : {std::uint16_t{0}, std::uint16_t{1}}) {
    life(100, domain == 0 ? Lifecycle::ring_start : Lifecycle::domain_spawn, domain);
    span(100, 200, "major", domain);
  }
  feed(Events(world.add_ring(world.registry.add_process(World::default_info())))
           .add(100, EventKind::begin, phase("major")));
  EXPECT_THAT(text(false), HasSubstr("\nGC% is of the time of all domains of a process together"));
}

TEST_F(StatsReportTest, TextOfManyProcessesSaysHowManyAreLeftOut) {
  for (int i = 0; i < 25; ++i) process(100, ProcessAction::found, world.registry.add_process(World::default_info()), 0);
  EXPECT_THAT(text(), HasSubstr("\nand 5 more, "));
  EXPECT_THAT(text(), HasSubstr("\n  no events\n"));
}

TEST_F(StatsReportTest, ShortTextOfSeveralProcessesSaysWhoseHeapGrows) {
  constexpr std::uint64_t mb = 125'000, second = 1'000'000'000;
  const auto add = [&](std::int32_t of, const std::string& comm, auto&& words_at) {
    ProcessInfo info = World::default_info();
    info.pid = of;
    info.comm = comm;
    Events events(world.add_ring(world.registry.add_process(info)));
    for (std::uint64_t i = 0; i <= 20; ++i)
      events.add(second + i * second / 2, EventKind::counter, counter("major_heap_words"), words_at(i));
    feed(events);
  };
  stats.header({.version = "1", .start_ns = second});
  add(11, "steady", [](std::uint64_t) { return 20 * mb; });
  add(12, "leaky", [](std::uint64_t i) { return (200 + 4 * i) * mb; });
  add(13, "loads", [](std::uint64_t i) { return (i < 5 ? 10 : 500) * mb; });
  add(14, "drops", [](std::uint64_t i) { return (90 - i) * mb; });
  const std::string expected =
      "4 OCaml processes in 10.0s\n"
      "leaky/12: heap 200 MB to 280 MB in 10.0s (8.00 MB/s), rising all the time; no major cycle ended\n"
      "loads/13: heap 10.0 MB to 500 MB in 10.0s (49.0 MB/s); no major cycle ended\n";
  const std::string screen = text(false);
  EXPECT_THAT(screen, testing::StartsWith(expected + "\n"));
  EXPECT_EQ(stats_sentences(stats.report(world.registry)), expected);
  EXPECT_THAT(screen, HasSubstr("   ALLOC     HEAP     GROWTH\n"));
  EXPECT_THAT(screen, testing::ContainsRegex("leaky .* 280 MB +8.00 MB/s\n"));
  EXPECT_THAT(screen, testing::ContainsRegex("drops .* 70.0 MB +-\n"));
}

class StatsOfProgramsTest : public StatsReportTest {
 protected:
  static constexpr std::uint64_t mb = 125'000, second = 1'000'000'000;

  /// A process that collects for a tenth of its second.
  void run(Stats& into, std::int32_t of, const std::string& exe, bool grows = false) {
    ProcessInfo info = World::default_info();
    info.pid = of;
    info.exe = exe;
    info.comm = exe.substr(exe.rfind('/') + 1);
    const ProcessIndex index = world.registry.add_process(info);
    Events events(world.add_ring(index));
    events.add(second, Lifecycle::ring_start, of);
    events.add(second, EventKind::begin, phase("major")).add(second + second / 10, EventKind::end, phase("major"));
    events.add(second + second / 10, EventKind::counter, counter("minor_allocated"), 8 * mb);
    for (std::uint64_t i = 0; i <= 20; ++i)
      events.add(second + second / 10 + i * second * 9 / 200, EventKind::counter, counter("major_heap_words"),
                 (100 + (grows ? 4 * i : 0)) * mb);
    into.consume(events.batch(), world.registry);
    const Events end = std::move(Events(0).add_record(2 * second, EventKind::process, ProcessRecord{index, 0, 0},
                                                      static_cast<std::uint16_t>(ProcessAction::exit)));
    into.consume(end.batch(), world.registry);
  }
  void build(Stats& into) {
    into.header({.version = "1", .start_ns = second});
    for (std::int32_t of = 1; of <= 6; ++of) run(into, of, "/opt/ocamlopt", of <= 2);
    for (std::int32_t of = 11; of <= 15; ++of) run(into, of, "/opt/dune");
  }
};

TEST_F(StatsOfProgramsTest, ManyProcessesOfOneProgramAreOneRow) {
  build(stats);
  const std::string screen = text(false);
  EXPECT_THAT(screen,
              testing::StartsWith("11 OCaml processes in 1.00s\n"
                                  "ocamlopt, 6 processes: GC took 600ms, 10.0% of the time of their domains\n"
                                  "  allocated 6.00 MB in minor heaps; heaps of up to 180 MB\n"
                                  "MMU: pauses left the program 0.0% of the worst 10ms, 0.0% of the worst 100ms\n"
                                  "\n"));
  EXPECT_THAT(screen, testing::ContainsRegex("\n +x6  ocamlopt +6 +- +600ms +10.00% +0 +6.00 MB +180 MB +-\n"));
  for (std::int32_t of = 11; of <= 15; ++of)
    EXPECT_THAT(screen, testing::ContainsRegex(fmt::format("\n +{}  dune +1 +1.00s +100ms ", of)));
  EXPECT_THAT(screen, Not(HasSubstr("more")));
  EXPECT_EQ(json()["processes"].size(), 11) << "JSON has all";
  const auto program = json()["programs"][0];
  EXPECT_EQ(program["exe"], "/opt/ocamlopt");
  EXPECT_EQ(program["processes"], 6);
  EXPECT_EQ(program["gc_ns"], 600'000'000);
  EXPECT_EQ(program["heaps_rising"], nullptr) << "a second does not say it";
  EXPECT_EQ(program["max_heap_words"], 180 * mb);
}

TEST_F(StatsOfProgramsTest, ByProcessEachHasARow) {
  Stats all({.by_process = true});
  build(all);
  const std::string screen = all.report_text(world.registry);
  EXPECT_THAT(screen, Not(HasSubstr("ocamlopt, 6 processes")));
  EXPECT_THAT(screen,
              testing::AllOf(HasSubstr("      1  ocamlopt "), HasSubstr("ocamlopt/1: heap "), HasSubstr("and 1 more")));
}

TEST_F(StatsOfProgramsTest, ProcessesThatAreNotRememberedCountForTheirProgram) {
  Stats few({.ended_processes = 4});
  build(few);
  build(stats);
  const auto rows = [](const std::string& screen) { return screen.substr(screen.find("    PID")); };
  const StatsReport report = few.report(world.registry);
  EXPECT_GT(report.other_process_count, 0);
  EXPECT_THAT(rows(stats_text(report, false)), testing::ContainsRegex("\n +x6  ocamlopt +6 +- +600ms +10.00% "));
  std::uint64_t gc_ns = 0;
  for (const ProgramStats& program : report.programs) gc_ns += program.figures.gc_ns;
  EXPECT_EQ(gc_ns, report.total.gc_ns);
}

TEST_F(StatsOfProgramsTest, OneProcessStandsForItsProgramInGcTuning) {
  build(stats);
  const std::string tuning = stats_text(stats.report(world.registry), false, true);
  EXPECT_THAT(tuning, HasSubstr("\nocamlopt/1, OCaml 5.3\n"));
  EXPECT_THAT(tuning, Not(HasSubstr("\nocamlopt/2, OCaml 5.3\n")));
  EXPECT_THAT(tuning, HasSubstr("\ndune/11, OCaml 5.3\n"));
}

TEST_F(StatsReportTest, ProcessesThatDidNothingAreLeftOut) {
  Stats few({.ended_processes = 4});
  const auto child = [&](std::uint64_t time) {
    const ProcessIndex index = world.registry.add_process(World::default_info());
    for (const auto action : {ProcessAction::fork, ProcessAction::exit}) {
      const Events events = std::move(Events(0).add_record(time, EventKind::process, ProcessRecord{index, 0, 0},
                                                           static_cast<std::uint16_t>(action)));
      few.consume(events.batch(), world.registry);
      feed(events);
    }
  };
  child(50);
  EXPECT_THAT(text(false), testing::StartsWith("server/4242, OCaml 5.3, 0ns, ended: no events"));
  Events pause(world.slot);
  pause.add(100, EventKind::begin, phase("major")).add(200, EventKind::end, phase("major"));
  few.consume(pause.batch(), world.registry);
  feed(pause);
  for (std::uint64_t time = 300; time < 310; ++time) child(time);
  for (const std::string& screen : {text(false), stats_text(few.report(world.registry), false)}) {
    EXPECT_THAT(screen, testing::StartsWith("server/4242, OCaml 5.3, 209ns: GC took 100ns"));
    EXPECT_EQ(screen, text(false));
  }
  EXPECT_EQ(stats_sentences(few.report(world.registry)), stats_sentences(stats.report(world.registry)));
  for (const bool full : {false, true})
    EXPECT_THAT(text(full), HasSubstr("\nwithout 11 processes that ended without any event\n"));
  EXPECT_EQ(json()["total"]["processes"], 12);
}

TEST_F(StatsReportTest, AForgedTimeBeforeTheRunMakesNoTimeLonger) {
  constexpr std::uint64_t start = 1'000'000'000'000;
  stats.header({.version = "1", .start_ns = start});
  process(start + 10, ProcessAction::exec);
  life(5, Lifecycle::domain_spawn);
  span(5, 10, "major");
  span(start + 20, start + 30, "major");
  stats.summary({.start_ns = start, .end_ns = start + 1000}, world.registry);
  const nlohmann::json report = json(), server = report["processes"][0];
  EXPECT_EQ(report["start_ns"], start);
  EXPECT_LE(report["total"]["wall_ns"], 1000);
  EXPECT_EQ(server["wall_ns"], 990);
  EXPECT_LE(server["domains"][0]["wall_ns"], 990);
}

TEST_F(StatsReportTest, TimesBeforeTheRunCountWhereThePastIsRead) {
  stats.header({.version = "1", .command_line = {"rtev-bpf", "stats", "--history"}, .start_ns = 10'000});
  span(1000, 2000, "major");
  process(10'100, ProcessAction::found);
  EXPECT_EQ(json()["processes"][0]["wall_ns"], 9'100);
}

TEST(RunHeader, OptionsOfTheProgramThatWasStartedAreNotOurs) {
  EXPECT_TRUE((RunHeader{.command_line = {"rtev-bpf", "stats", "--history", "--", "prog"}}).reads_past());
  EXPECT_FALSE((RunHeader{.command_line = {"rtev-bpf", "stats", "--", "prog", "--history"}}).reads_past());
}

TEST_F(StatsReportTest, AProcessIsCountedOnceForAllItsPrograms) {
  // A build tool whose children write events, or none, before they run a compiler.
  const auto add = [&](std::int32_t child, std::uint32_t generation, bool has_events, std::uint64_t time) {
    ProcessInfo info = World::default_info();
    info.pid = child;
    info.exec_generation = generation;
    info.comm = generation == 0 ? "dune" : "ocamlopt";
    const ProcessIndex index = world.registry.add_process(info);
    process(time, generation == 0 ? ProcessAction::fork : ProcessAction::exec, index, 0);
    if (has_events)
      feed(Events(world.registry.add_ring({.process = index})).add(time + 1, EventKind::begin, phase("major")));
    process(time + 2, ProcessAction::exit, index, generation == 0 ? exit_by_exec : 0);
  };
  for (const std::int32_t child : {1, 2}) {
    const auto time = static_cast<std::uint64_t>(child) * 100;
    add(child, 0, child == 1, time);
    add(child, 1, true, time + 10);
  }
  EXPECT_EQ(world.registry.process_count(), 3u) << "with the server";
  EXPECT_EQ(json()["total"]["processes"], 2);
  EXPECT_THAT(text(false), HasSubstr("2 OCaml processes, which ran 3 programs, in"));
  EXPECT_THAT(text(false), Not(HasSubstr("ended without any event"))) << "each had some";
}

TEST_F(StatsReportTest, ShortTextListsTheDomainsOfOneProcess) {
  run_two_domains();
  EXPECT_EQ(text(false), test::golden("analysis/golden/stats_short.txt"));
}

TEST_F(StatsReportTest, ShortTextFitsATerminal) {
  lose(300, 400, UINT64_MAX / 4);
  for (std::uint16_t domain = 0; domain < 500; ++domain) {
    life(500, Lifecycle::domain_spawn, domain);
    begin(500, "major", domain);
  }
  const auto expect_fits = [&] {
    const std::string report = text(false);
    EXPECT_LE(std::ranges::count(report, '\n'), 22) << report;
    for (std::size_t begin = 0; begin < report.size(); begin = report.find('\n', begin) + 1)
      EXPECT_LE(report.find('\n', begin) - begin, 100u) << report;
  };
  expect_fits();
  EXPECT_THAT(text(false), HasSubstr("and 490 more"));
  for (int i = 0; i < 100; ++i) {
    ProcessInfo info = World::default_info();
    info.comm = "and 15 more cha";
    info.exe += std::to_string(i);
    process(600, ProcessAction::found, world.registry.add_process(info), 0);
  }
  process(3'600'000'000'000, ProcessAction::resume);
  expect_fits();
  EXPECT_THAT(text(false), testing::ContainsRegex("   4242  server[0-9]+/and 15 more cha +0 +3,600s "));
  EXPECT_THAT(text(false), testing::ContainsRegex("\n +and 91 more +- "));
  EXPECT_LT(text(true).size(), 100'000u) << "also in full it is bounded";
}

TEST_F(StatsReportTest, SpansHaveDurationsByName) {
  world.user_names = {{1, "request"}, {2, "query"}, {3, "tick"}, {4, "never\x1b ends"}};
  stats.header({.version = "1", .start_ns = 1'000'000'000});
  process(1'000'000'000, ProcessAction::found);
  feed(Events(world.slot).add("1000 [1 2000 [2 3000 ]2 4000 ]1 5000 [1 5500 [1 6000 ]1 9000 ]1", 1'000'000'000));
  feed(Events(world.slot).add("1000 [1 2000 ? 3000 ]1 4000 [4", 2'000'000'000));
  feed(Events(world.slot).add(2'500'000'000, EventKind::user_unit, 3));
  process(3'000'000'000, ProcessAction::exit, 0);
  const std::string screen = text(false);
  EXPECT_THAT(screen, HasSubstr("\nuser events: 4+ \"request\", 1+ \"query\", 1+ \"tick\", 1+ \"never\\x1B ends\"\n"));
  EXPECT_THAT(screen,
              HasSubstr("\n\n"
                        "SPAN                         COUNT      MEAN       P99       MAX     TOTAL     TIME%\n"
                        "request                          3+   2.50µs         -    4.00µs    7.50µs+      <1%+\n"
                        "query                            1+   1.00µs         -    1.00µs    1.00µs+      <1%+\n"));
  EXPECT_THAT(text(), HasSubstr("\n  request       "));
  const auto request = json()["processes"][0]["user_event_counts"][0];
  EXPECT_EQ(request["name"], "request");
  EXPECT_EQ(request["count"], 4) << "of one the end was lost";
  EXPECT_EQ(request["spans"]["count"], 3);
  EXPECT_EQ(request["spans"]["max_ns"], 4000);
  EXPECT_THAT(stats_sentences(stats.report(world.registry)), HasSubstr("\"request\""));
}

TEST_F(StatsReportTest, WhatEachMajorCycleLeftIsListed) {
  constexpr std::uint64_t second = 1'000'000'000;
  stats.header({.version = "1.2.3", .start_ns = second});
  process(second, ProcessAction::exec);
  for (const std::uint64_t cycle : {1, 2, 3}) {
    count(second + cycle * second / 2, "major_heap_pool_live_words", cycle * 1'000'000);
    count(second + cycle * second / 2, "major_heap_large_words", 500'000);
  }
  EXPECT_THAT(text(), HasSubstr("\n  live after major cycles: 12.0 MB at 500ms, 20.0 MB at 1.00s, 28.0 MB at 1.50s\n"));
  EXPECT_EQ(json()["processes"][0]["live_words"]["samples"][2],
            (nlohmann::json{{"ts", second * 5 / 2}, {"words", 3'500'000}}));
}

TEST_F(StatsReportTest, SaysHowLongAgoTheLastCycleWasAndThatTheyHaveStopped) {
  constexpr std::uint64_t ms = 1'000'000, second = 1000 * ms, mb = 125'000;
  stats.header({.version = "1", .start_ns = second});
  process(second, ProcessAction::exec);
  EXPECT_TRUE(json()["processes"][0]["cycles"]["last_ns"].is_null());
  for (std::uint64_t cycle = 1; cycle <= 5; ++cycle) {
    const std::uint64_t at = second + cycle * 200 * ms;
    count(at - ms, "major_heap_words", 40 * mb);
    count(at - ms, "minor_allocated", 100);
    // All domains have the phase; it is one cycle.
    for (const std::uint16_t domain : {std::uint16_t{0}, std::uint16_t{1}}) {
      begin(at, "major_gc_stw", domain);
      end(at + ms, "major_gc_stw", domain);
    }
  }
  EXPECT_THAT(text(false), HasSubstr("5 major cycles, the\n  last 1.00ms ago\n"));
  count(3 * second, "major_heap_words", 60 * mb);
  EXPECT_THAT(text(false), HasSubstr(" last 1.00s ago\n"));
  EXPECT_THAT(text(false), Not(HasSubstr("have stopped"))) << "the heap has not doubled";
  count(4 * second, "major_heap_words", 3000 * mb);
  EXPECT_THAT(text(false),
              HasSubstr("major cycles have stopped: the last one ended 2.00s before the end; until then they came at "
                        "most\n  200ms apart;"));
  const auto cycles = json()["processes"][0]["cycles"];
  EXPECT_EQ(cycles, (nlohmann::json{{"last_ns", 2 * second},
                                    {"since_last_ns", 2 * second},
                                    {"longest_gap_ns", 200 * ms},
                                    {"have_stopped", true}}));
  lose(3 * second, 4 * second, 7);
  EXPECT_THAT(text(false), Not(HasSubstr("have stopped"))) << "others may have been lost";
}

TEST_F(StatsReportTest, BlocksAreShownBySize) {
  std::array<std::uint64_t, alloc_bucket_count> flushed{};
  flushed[2] = 25'924;
  flushed[10] = 7;
  flushed[18] = 3;
  flushed[19] = 95;
  feed(Events(world.slot).add_record(10, EventKind::alloc, flushed));
  EXPECT_THAT(text(), HasSubstr("blocks allocated by size in words:  2: 25,924  10-19: 7  90-99: 3  100+: 95\n"));
  EXPECT_EQ(json()["processes"][0]["alloc_buckets"], nlohmann::json(flushed));
}

TEST_F(StatsReportTest, TextSaysWhatTheSummaryLacks) {
  RunSummary summary{.late = 3, .rings_missed = 1};
  summary.drops = {{"switch", 1234}};
  stats.summary(summary, world.registry);
  EXPECT_THAT(text(), HasSubstr("warning: CPU times are lower bounds: the kernel dropped 1,234 context switches\n"));
  EXPECT_THAT(text(),
              HasSubstr("warning: missing: 1 ring that was not read to its end; 3 events out of order, near which"));
  EXPECT_EQ(json()["rings_missed"], 1);
}

TEST_F(StatsReportTest, JsonHasPlainNumbers) {
  run_two_domains();
  EXPECT_EQ(json(), nlohmann::json::parse(test::golden("analysis/golden/stats.json")));
  const std::string line = stats.report_json(world.registry);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST_F(StatsReportTest, JsonSaysWhichFiguresAreLowerBounds) {
  lose(300, 400, 1);
  process(500, ProcessAction::pause);
  begin(600, "stw_leader");
  process(700, ProcessAction::resume);
  EXPECT_THAT(json()["processes"][0],
              HasMembers(R"({"lower_bound":true,"because":["lost","paused","unfinished"],"losses":1,"lost_words":1,
                             "domains":[{"lower_bound":true}]})"_json));
}

TEST_F(StatsReportTest, FiguresAreLowerBoundsIfNotAllRingsWereRead) {
  run_two_domains();
  EXPECT_EQ(json()["total"]["lower_bound"], false);
  world.registry.process(world.process).missed.gone = 1;
  stats.summary({.rings_missed = 1}, world.registry);
  const nlohmann::json report = json();
  EXPECT_THAT(report["total"], HasMembers(R"({"lower_bound":true,"because":["not_read"]})"_json));
  for (const auto& of : {report["processes"][0], report["processes"][0]["domains"][0]})
    EXPECT_THAT(of, HasMembers(R"({"lower_bound":true,"because":["not_read"]})"_json));
  EXPECT_THAT(text(), HasSubstr("lower bound: not all events were read"));
}

TEST_F(StatsReportTest, AProgramThatHasJustBegunIsNotSaidToHaveItsEventsOff) {
  ProcessInfo& info = world.registry.process(world.process);
  info.ring = RingState::none;
  info.domains = 0;
  constexpr std::uint64_t begin_ns = 2'000'000'000;
  stats.header({.start_ns = begin_ns / 2});
  process(begin_ns, ProcessAction::fork);
  EXPECT_EQ(stats.report(world.registry).read_programs.off, 0u);
  change(begin_ns + max_start_ns, stranger(), stranger());
  EXPECT_EQ(stats.report(world.registry).read_programs.off, 1u);
}

TEST_F(StatsReportTest, AMissedRingIsNotCalledEventsOff) {
  ProcessInfo& info = world.registry.process(world.process);
  info.ring = RingState::none;
  info.domains = 0;
  process(100, ProcessAction::exec);
  process(200, ProcessAction::exit);
  EXPECT_EQ(figures().events, EventsRead::off);
  info.missed.gone = 1;  // a recording says so at its end
  EXPECT_EQ(figures().events, EventsRead::unread);
  EXPECT_EQ(stats.report(world.registry).read_programs.unread, 1u);
}

TEST_F(StatsReportTest, WithoutEventsOfProcessesTheirTimesAreUnknown) {
  RunHeader header{.version = "1.2", .start_ns = 1'000'000'000};
  header.not_recorded.selection = "--events user";
  for (const EventKind kind : {EventKind::process, EventKind::lifecycle})
    header.not_recorded.kinds.set(static_cast<std::size_t>(kind));
  stats.header(header);
  stats.summary({.end_ns = 6'000'000'000}, world.registry);
  EXPECT_EQ(json()["total"]["processes"], nullptr);
  EXPECT_THAT(text(false), HasSubstr("no event of an OCaml process in 5.00s\n"));
  feed(Events(world.slot).add(3'000'000'000, EventKind::user_unit, 1));
  begin(4'000'000'000, "minor");
  const nlohmann::json report = json();
  EXPECT_EQ(report["total"]["wall_ns"], 5'000'000'000);
  EXPECT_EQ(report["total"]["domain_ns"], nullptr);
  EXPECT_THAT(report["total"], HasMembers(R"({"gc_ns":0,"because":["unfinished"]})"_json));
  for (const char* const member : {"wall_ns", "domain_ns", "gc_share"}) {
    EXPECT_EQ(report["processes"][0].at(member), nullptr) << member;
    EXPECT_EQ(report["processes"][0]["domains"][0].at(member), nullptr) << member;
  }
  EXPECT_THAT(text(false), HasSubstr("server/4242, OCaml 5.3, in 5.00s"));
}

TEST_F(StatsReportTest, CollectionsThatWereNotSeenAreUnknown) {
  count(1'000'000'000, "minor_allocated", 80'000'000);
  EXPECT_EQ(json()["total"]["collections"]["minor"], nullptr);
  EXPECT_THAT(text(false), HasSubstr("collections unknown"));
}

TEST_F(StatsReportTest, WhereWordsWereLostAllFiguresOfTheSentencesAreLowerBounds) {
  const auto collect = [this](std::uint64_t at) {
    span(at, at + 1'000'000, "minor");
    count(at + 1'000'000, "minor_allocated", 8'000'000);
    count(at + 1'000'000, "minor_promoted", 80'000);
    span(at + 2'000'000, at + 3'000'000, "major_gc_stw");
  };
  collect(1'000'000'000);
  stats.summary({.end_ns = 3'000'000'000}, world.registry);
  EXPECT_THAT(text(false), Not(HasSubstr("at least 1 minor")));
  lose(2'000'000'000, 2'500'000'000, 7);
  const std::string screen = text(false);
  for (const char* const figure : {"GC took at least ", ", at least 0.1% of the time", "allocated at least 8.00 MB",
                                   "at least 1 minor collection", "at least 1 major cycle"})
    EXPECT_THAT(screen, HasSubstr(figure));
}

TEST_F(StatsReportTest, SpansAreComparedWithTheTimeOfTheDomains) {
  world.user_names = {{1, "request"}};
  stats.header({.version = "1", .start_ns = 1'000'000'000});
  process(1'000'000'000, ProcessAction::found);
  process(9'000'000'000, ProcessAction::ring);  // its events were switched on
  feed(Events(world.slot).add(10'000'000'000, EventKind::user_begin, 1));
  feed(Events(world.slot).add(11'000'000'000, EventKind::user_end, 1));
  EXPECT_THAT(text(false), testing::ContainsRegex("request +1 +1.00s +- +1.00s +1.00s +100%\n"));
}

TEST_F(StatsReportTest, WhatProgramsCallThemselvesIsEscaped) {
  std::uint64_t at = 10;
  for (const std::string& hostile : hostile_strings()) {
    ProcessInfo info = World::default_info();
    info.comm = info.exe = info.version = info.runtime = hostile;
    const std::uint32_t ring = world.add_ring(world.registry.add_process(info));
    world.user_names[1] = hostile;
    feed(Events(ring).add(++at, EventKind::user_unit, 1));
  }
  for (const char c : text() + text(false)) EXPECT_TRUE(c == '\n' || (c >= ' ' && c != 0x7f)) << static_cast<int>(c);
  EXPECT_EQ(json()["processes"].size(), hostile_strings().size());
}

}  // namespace
}  // namespace rtev::test
