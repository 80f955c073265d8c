// SPDX-License-Identifier: MIT
#include "formats/text/run_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>

#include "stream/losses.hpp"
#include "support/files.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Of a process that was never seen to exec.
struct World : test::World {
  World() { registry.process(process).exec_generation = 0; }
};

RunSummary quiet_summary() {
  RunSummary summary{.start_ns = 1'000'000'000, .end_ns = 6'000'000'000};
  summary.events[static_cast<std::size_t>(EventKind::begin)] = 1'999'000;
  summary.events[static_cast<std::size_t>(EventKind::sched_switch)] = 1'000;
  summary.drops = {{"switch", 0}, {"exec", 0}};
  summary.own_cpu_ns = 500'000'000;
  summary.own_max_rss_bytes = 34'500'000;
  return summary;
}

TEST(Summary, OfACleanRun) {
  World world;
  ProcessInfo& info = world.registry.process(world.process);
  info.words = {.written = 5'000, .delivered = 4'990, .before_attach = 10, .events = 2'000};
  info.domains = 3;
  EXPECT_EQ(summary_text(quiet_summary(), world.registry, true), test::golden("formats/text/golden/summary_clean.txt"));
}

TEST(Summary, ACleanRunIsALine) {
  const World world;
  EXPECT_EQ(summary_text(quiet_summary(), world.registry, false),
            "2,000,000 events of 1 OCaml process in 5.00s, nothing lost, nothing dropped\n");
  RunSummary summary = quiet_summary();
  summary.rings_missed = 1;
  EXPECT_EQ(summary_text(summary, world.registry, false), summary_text(summary, world.registry, true));
}

TEST(Summary, OfARunWithAllWarnings) {
  World world;
  ProcessInfo& info = world.registry.process(world.process);
  info.words = {.written = 1'110, .delivered = 0, .lost = 1'000, .corrupt = 100, .unread = 10};
  info.ring = RingState::shared;
  RunSummary summary = quiet_summary();
  summary.drops = {{"switch", 12'345},    {"wakeup", 0},      {"exit", 1},      {"limited", 1},
                   {"unprobed", 2},       {"ring", 7},        {"tables", 3},    {"untracked", 1},
                   {"save", 4},           {"probed", 5},      {"unwritten", 6}, {"ring_file_system", 1},
                   {"ring_no_answer", 1}, {"ring_memory", 1}, {"new\n", 2}};
  summary.rings_missed = 6;
  summary.forced = 2;
  summary.late = 1;
  EXPECT_EQ(summary_text(summary, world.registry, true), test::golden("formats/text/golden/summary_warnings.txt"));
  summary.complete = false;
  EXPECT_THAT(summary_text(summary, world.registry, true), HasSubstr("warning: the recording is truncated"));
}

TEST(Summary, TheHeadlineNamesAllThatIsMissing) {
  const World world;
  RunSummary summary = quiet_summary();
  summary.late = 166'937;
  EXPECT_EQ(
      summary_text(summary, world.registry, false),
      "2,000,000 events of 1 OCaml process in 5.00s, nothing lost, nothing dropped; 166,937 events out of order\n");
  summary.drops = {{"sample", 24}, {"sample_off_cpu", 20}, {"sample_allocation", 1}, {"switch", 7}};
  const std::string text = summary_text(summary, world.registry, false);
  EXPECT_THAT(text,
              HasSubstr("in 5.00s; missing: 7 scheduler events, 3 stack samples, 20 stack samples of sleeps and 2 "
                        "other kinds\n"));
  EXPECT_THAT(text, HasSubstr("warning: 20 stack samples of sleeps were dropped: "));
}

TEST(Summary, GapsThatNobodyCountedAreSaid) {
  const World world;
  const std::string text = summary_text(with_scheduler_gaps(quiet_summary(), 2), world.registry, false);
  EXPECT_THAT(text, HasSubstr("in 5.00s; missing: 2 gaps in the scheduler events of threads\n"));
  EXPECT_THAT(text, HasSubstr("warning: 2 gaps in the scheduler events of threads: what these threads did then"));
  EXPECT_EQ(summary_text(with_scheduler_gaps(quiet_summary(), 0), world.registry, false),
            summary_text(quiet_summary(), world.registry, false));
}

TEST(Summary, WhatARecordingWithoutItsEndDoesNotHaveIsUnknown) {
  World world;
  RunSummary summary = quiet_summary();
  summary.complete = false;
  world.registry.process(world.process).words = {.lost = 5, .events = 2'000};
  EXPECT_THAT(summary_text(summary, world.registry, true),
              HasSubstr("   4242 server          5.3       ?          2,000              ?           5+            ?   "
                        "         ?\n"));
}

TEST(Summary, HintsAtNothingThatIsDoneAlready) {
  World world;
  world.registry.process(world.process).words.lost = 5;
  RunSummary summary = quiet_summary();
  summary.drops = {{"switch", 3}};
  summary.forced = 1;
  const std::string to_pipe = summary_text(summary, world.registry, false);
  EXPECT_THAT(to_pipe, HasSubstr("larger rings (OCAMLRUNPARAM=e=18), write to a file (-o), or trace less"));
  const std::string to_file = summary_text(summary, world.registry, false, {.is_file = true});
  EXPECT_THAT(to_file, HasSubstr("larger rings (OCAMLRUNPARAM=e=18), or trace less"));
  EXPECT_THAT(to_file, Not(HasSubstr("write to a file")));
  const std::string of_report = summary_text(summary, world.registry, false, {.is_file = true, .is_report = true});
  EXPECT_THAT(of_report, Not(HasSubstr("--events"))) << "reports do not have the option";
  const std::string to_slow = summary_text(summary, world.registry, false, {.blocked_ns = 5'200'000'000});
  EXPECT_THAT(to_slow, HasSubstr("hint: whatever reads the output took nothing for 5.20s: write to a file (-o)"));
  EXPECT_THAT(to_slow, Not(HasSubstr("larger")));
}

TEST(Summary, IsCleanOnlyWithoutAnyLoss) {
  const auto text_after = [](const std::function<void(ProcessInfo&, RunSummary&)>& change) {
    World world;
    RunSummary summary = quiet_summary();
    change(world.registry.process(world.process), summary);
    return summary_text(summary, world.registry, true);
  };
  EXPECT_THAT(text_after([](ProcessInfo&, RunSummary&) {}), HasSubstr(", nothing lost, nothing dropped\n"));
  const std::function<void(ProcessInfo&, RunSummary&)> losses[] = {
      [](ProcessInfo& info, RunSummary&) { info.words.lost = 1; },
      [](ProcessInfo& info, RunSummary&) { info.words.corrupt = 1; },
      [](ProcessInfo& info, RunSummary&) { info.words.unread = 1; },
      [](ProcessInfo& info, RunSummary&) { info.ring = RingState::shared; },
      [](ProcessInfo&, RunSummary& summary) { summary.rings_missed = 1; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{"exec", 1}}; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{"of another version", 1}}; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{std::string(RunSummary::limited), 1}}; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{std::string(RunSummary::unsampled), 1}}; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{std::string(RunSummary::unprobed), 1}}; },
      [](ProcessInfo&, RunSummary& summary) { summary.events[static_cast<std::size_t>(EventKind::lost)] = 1; },
      [](ProcessInfo&, RunSummary& summary) { summary.complete = false; },
  };
  for (std::size_t i = 0; i < std::size(losses); ++i) {
    const std::string text = text_after(losses[i]);
    EXPECT_THAT(text, HasSubstr("\nwarning: ")) << i;
    EXPECT_THAT(text, Not(HasSubstr("nothing lost"))) << i;
  }
}

TEST(Summary, ListsEachImageOfAPid) {
  World world;
  ProcessInfo second = world.registry.process(world.process);
  second.exec_generation = 1;
  world.registry.add_process(second);
  const std::string text = summary_text(quiet_summary(), world.registry, true);
  EXPECT_THAT(text, HasSubstr("\n    PID EXECS COMM            RUNTIME DOM "));
  EXPECT_THAT(text, HasSubstr("\n   4242     0 server          5.3 "));
  EXPECT_THAT(text, HasSubstr("\n   4242     1 server          5.3 "));
}

TEST(Summary, NamesOtherProducers) {
  World world;
  world.registry.process(world.process).runtime = "librtev";
  EXPECT_THAT(summary_text(quiet_summary(), world.registry, true), HasSubstr("\n   4242 server          librtev   - "));
}

TEST(Summary, OfNothing) {
  const std::string text = summary_text({}, Registry{}, true);
  EXPECT_THAT(text, testing::StartsWith("0 events of 0 OCaml processes, nothing lost, nothing dropped\n"));
  EXPECT_THAT(text, HasSubstr("nothing lost, nothing dropped\n"));
  EXPECT_THAT(text, Not(HasSubstr("PID")));
  EXPECT_THAT(text, Not(HasSubstr("per million")));
}

/// Processes 1000 to 1024, with as many events as their pid says.
void add_25(Registry& registry, const std::function<void(ProcessInfo&)>& change) {
  for (int i = 0; i < 25; ++i) {
    ProcessInfo info;
    info.pid = 1000 + i;
    info.words.events = static_cast<std::uint64_t>(i);
    change(info);
    registry.add_process(info);
  }
}

TEST(Summary, ShowsTheMostActiveAndCountsTheRest) {
  Registry registry;
  add_25(registry, [](ProcessInfo&) {});
  const std::string text = summary_text({}, registry, true);
  EXPECT_LT(text.find("   1024 "), text.find("   1023 "));
  EXPECT_THAT(text, HasSubstr("   1005 "));
  EXPECT_THAT(text, Not(HasSubstr("   1004 ")));
  EXPECT_THAT(text, HasSubstr("and 5 more, with 10 events\n"));
}

TEST(Summary, ShowsProgramsThatLackWordsFirst) {
  Registry registry;
  add_25(registry, [](ProcessInfo& info) {
    if (info.pid == 1000) info.words.lost = 7;
    if (info.pid == 1001) info.words.corrupt = 1;
    if (info.pid == 1002) info.words.unread = 1;
    if (info.pid == 1003) info.ring = RingState::unreadable;
  });
  const std::string text = summary_text({}, registry, true);
  for (const char* const earlier : {"   1000 ", "   1001 ", "   1002 ", "   1003 "})
    EXPECT_LT(text.find(earlier), text.find("   1024 ")) << earlier;
  EXPECT_THAT(text, HasSubstr("and 5 more, with 30 events\n"));
}

TEST(Summary, CountsWordsOfProgramsThatAreNotShown) {
  Registry registry;
  add_25(registry, [](ProcessInfo& info) { info.words.lost = info.words.corrupt = info.words.unread = 1; });
  EXPECT_THAT(summary_text({}, registry, true),
              HasSubstr("and 5 more, with 10 events, 5 words lost, 5 words corrupt, 5 words unread\n"));
}

TEST(Summary, WarningsNameTheProgramWithMostOfTheWords) {
  Registry registry;
  add_25(registry, [](ProcessInfo& info) {
    info.name = info.comm = "\x1b[31m";
    if (info.pid <= 1001) info.words.lost = info.pid == 1000 ? 7 : 3;
    if (info.pid == 1002) info.words.corrupt = 5;
    if (info.pid == 1003) info.words.unread = 6;
  });
  const std::string text = summary_text({}, registry, true);
  EXPECT_THAT(text, HasSubstr(R"(warning: 10 ring words were lost, 7 of them of pid 1000 (\x1B[31m))"));
  EXPECT_THAT(text, HasSubstr("warning: 5 words were corrupt and skipped, all of pid 1002 ("));
  EXPECT_THAT(text, HasSubstr("warning: 6 ring words were left unread, all of pid 1003 ("));
}

TEST(Summary, WarningsNameTheProgramWithMostOfTheMissedRings) {
  Registry registry;
  add_25(registry, [](ProcessInfo& info) {
    info.name = info.comm = "\x1b[31m";
    if (info.pid <= 1001) info.missed.gone = info.pid == 1000 ? 7 : 3;
    if (info.pid == 1002) info.missed.file_system = 1;
    if (info.pid == 1003) info.missed.no_answer = 1;
    if (info.pid == 1004) info.missed.memory = 1;
  });
  RunSummary summary;
  summary.drops = {{"ring_file_system", 1}, {"ring_no_answer", 2}, {"ring_memory", 1}};
  summary.rings_missed = 14;
  const std::string text = summary_text(summary, registry, true);
  EXPECT_THAT(text, HasSubstr("warning: 1 ring was not read, all of pid 1002 ("));
  EXPECT_THAT(text, HasSubstr("warning: 2 rings were not read, 1 of them of pid 1003 ("));
  EXPECT_THAT(text, HasSubstr("warning: 1 ring was not read, all of pid 1004 ("));
  EXPECT_THAT(text,
              HasSubstr(R"(warning: 10 rings were gone or unusable before all events were read, 7 of them of pid )"
                        R"(1000 (\x1B[31m))"));
}

TEST(Summary, TellsHowLongARingWithCorruptWordsWasLeftAlone) {
  Registry registry;
  add_25(registry, [](ProcessInfo& info) {
    if (info.pid <= 1001) info.words = {.lost = info.pid == 1000 ? 7u : 3u, .corrupt = info.pid == 1000 ? 4u : 1u};
    if (info.pid == 1000) info.left_alone = {.times = 17, .ns = 12'300'000'000};
  });
  EXPECT_THAT(summary_text({}, registry, true), HasSubstr("; its ring was left alone 17 times, 12.3s in all\n"));
  EXPECT_THAT(summary_text({}, registry, true), Not(HasSubstr("larger rings")))
      << "its words were not lost for lack of room";
  registry.process(2).words.lost = 8;
  EXPECT_THAT(summary_text({}, registry, true), HasSubstr("larger rings")) << "another one lost most";
}

TEST(Summary, NamesTheProcessWithMostDroppedAnnouncements) {
  RunSummary summary;
  summary.drops = {{"exec", 1}, {"ring", 7}, {"probe", 3}};
  EXPECT_THAT(summary_text(summary, Registry{}, true), HasSubstr("(ring 7, probe 3)\n")) << "it is unknown";
  summary.announcers = {{.pid = 8, .comm = "other", .dropped = 1}, {.pid = 9, .comm = "\x1b[31m", .dropped = 8}};
  const std::string text = summary_text(summary, Registry{}, true);
  EXPECT_THAT(text, HasSubstr(R"((ring 7, probe 3), 8 of them of pid 9 (\x1B[31m))"));
  EXPECT_THAT(text, HasSubstr("(exec 1)\n"));
}

TEST(Summary, WordsOfARowAddUp) {
  World world;
  world.registry.process(world.process).words = {.written = 1'111'110,
                                                 .delivered = 10,
                                                 .lost = 100,
                                                 .before_attach = 1'000,
                                                 .corrupt = 10'000,
                                                 .unread = 1'100'000};
  const std::string text = summary_text(quiet_summary(), world.registry, true);
  EXPECT_THAT(text, testing::ContainsRegex("  CORRUPT       UNREAD\n .* 10 +100 +1,000 +10,000 +1,100,000\n"));
}

TEST(Summary, HintsFitTheCause) {
  World world;
  const auto text_with = [&](std::string_view kind) {
    RunSummary summary = quiet_summary();
    summary.drops = {{std::string(kind), 1}};
    summary.rings_missed = kind.starts_with("ring_") ? 1 : 0;
    return summary_text(summary, world.registry, true);
  };
  for (const char* const kind : {"switch", "wakeup"}) EXPECT_THAT(text_with(kind), HasSubstr("--buffer")) << kind;
  for (const char* const kind : {"exec", "fork", "exit", "ring", "probe", "untracked", "ring_no_answer"})
    EXPECT_THAT(text_with(kind), Not(HasSubstr("hint:"))) << kind;
  EXPECT_THAT(text_with("ring_memory"), HasSubstr("hint: raise --memory-limit"));
  EXPECT_THAT(text_with("ring_other_user"), HasSubstr("hint: put rings into a directory"));
  EXPECT_THAT(text_with("ring_too_large"), HasSubstr("hint: restart it with smaller rings"));
  for (const char* const kind :
       {"ring_file_system", "ring_no_answer", "ring_memory", "ring_other_user", "ring_too_large"})
    EXPECT_THAT(text_with(kind), Not(HasSubstr("PRESERVE"))) << kind;
}

TEST(Summary, CountsProcessesThatAreNoLongerListed) {
  Registry registry;
  for (std::size_t i = 0; i < Registry::remembered + 10; ++i) {
    ProcessInfo info;
    info.words.lost = 1;
    registry.retire_process(registry.add_process(info));
  }
  const std::string text = summary_text({}, registry, true);
  EXPECT_THAT(text, HasSubstr("4,106 OCaml processes"));
  EXPECT_THAT(text, HasSubstr("and 4,086 more"));
  EXPECT_THAT(text, HasSubstr("warning: 4,106 ring words were lost, 1 of them of pid 0 ("));
}

TEST(Summary, EscapesNamesOfPrograms) {
  for (const std::string& hostile : test::hostile_strings()) {
    ProcessInfo info;
    info.name = info.comm = info.version = hostile;
    Registry registry;
    registry.add_process(info);
    for (const char c : summary_text({}, registry, true)) {
      ASSERT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    }
  }
}

}  // namespace
}  // namespace rtev
