// SPDX-License-Identifier: MIT
#include "formats/text/run_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  ProcessInfo& facts = world.registry.process(world.process);
  facts.words = {.written = 5'000, .delivered = 4'990, .before_attach = 10, .events = 2'000};
  facts.domains = 3;
  EXPECT_EQ(summary_text(quiet_summary(), world.registry),
            "2,000,000 events of 1 OCaml process in 5.00s\n"
            "\n"
            "    PID COMM            RUNTIME DOM         EVENTS          WORDS         LOST       BEFORE      CORRUPT\n"
            "   4242 server          5.3       3          2,000          4,990            0           10            0\n"
            "\n"
            "events:  begin 1,999,000, switch 1,000\n"
            "nothing lost, nothing dropped\n"
            "tracer:  500ms of cpu time (250ms per million events), 34.5 MB of memory at most\n");
}

TEST(Summary, TellsTheImagesOfOnePidApart) {
  World world;
  ProcessInfo second = world.registry.process(world.process);
  second.exec_generation = 1;
  world.registry.add_process(second);
  const std::string text = summary_text(quiet_summary(), world.registry);
  EXPECT_THAT(text, HasSubstr("\n    PID EXECS COMM            RUNTIME DOM "));
  EXPECT_THAT(text, HasSubstr("\n   4242     0 server          5.3 "));
  EXPECT_THAT(text, HasSubstr("\n   4242     1 server          5.3 "));
}

TEST(Summary, NamesOtherProducers) {
  World world;
  world.registry.process(world.process).runtime = "librtev";
  EXPECT_THAT(summary_text(quiet_summary(), world.registry), HasSubstr("\n   4242 server          librtev   0 "));
}

TEST(Summary, OfNothing) {
  const std::string text = summary_text({}, Registry{});
  EXPECT_THAT(text, testing::StartsWith("0 events of 0 OCaml processes\n"));
  EXPECT_THAT(text, HasSubstr("nothing lost, nothing dropped\n"));
  EXPECT_THAT(text, Not(HasSubstr("PID")));
  EXPECT_THAT(text, Not(HasSubstr("per million")));
}

TEST(Summary, ProcessesThatCouldNotBeProbedAreNoCleanRun) {
  World world;
  RunSummary summary = quiet_summary();
  summary.drops.push_back({std::string(RunSummary::unprobed), 2});
  const std::string text = summary_text(summary, world.registry);
  EXPECT_THAT(
      text, HasSubstr("warning: 2 processes without a ring could not be probed: their events are missing\n   hint: "));
  EXPECT_THAT(text, Not(HasSubstr("nothing lost")));
  EXPECT_THAT(text, Not(HasSubstr("dropped")));
}

TEST(Summary, ProgramsThatShareARingAreToldOf) {
  World world;
  world.registry.process(world.process).ring = RingState::shared;
  const std::string text = summary_text(quiet_summary(), world.registry);
  EXPECT_THAT(text, HasSubstr("warning: 1 process wrote into a ring of another one"));
  EXPECT_THAT(text, HasSubstr("hint: give each container a directory"));
  EXPECT_THAT(text, Not(HasSubstr("nothing lost")));
}

TEST(Summary, LossesStandOutWithAHint) {
  World world;
  ProcessInfo& facts = world.registry.process(world.process);
  facts.words = {.written = 1'100, .delivered = 0, .lost = 1'000, .corrupt = 100};
  RunSummary summary = quiet_summary();
  summary.drops = {{"switch", 12'345}, {"wakeup", 0}, {"exit", 1}};
  summary.forced = 2;
  summary.late = 1;
  const std::string text = summary_text(summary, world.registry);
  EXPECT_THAT(text, HasSubstr("warning: 1,000 ring words were lost: overwritten before they were read\n"));
  EXPECT_THAT(text, HasSubstr("OCAMLRUNPARAM=e="));
  EXPECT_THAT(text, HasSubstr("warning: 100 words were corrupt"));
  EXPECT_THAT(text, HasSubstr("warning: records were dropped by the kernel's buffers: switch 12,345, exit 1\n"));
  EXPECT_THAT(text, HasSubstr("--buffer"));
  EXPECT_THAT(text, HasSubstr("events were written too early 2 times"));
  EXPECT_THAT(text, HasSubstr("late:    1 event arrived"));
  EXPECT_THAT(text, Not(HasSubstr("nothing lost")));
  EXPECT_THAT(text, Not(HasSubstr("wakeup")));
}

TEST(Summary, ShowsTheMostActiveAndCountsTheRest) {
  Registry registry;
  for (int i = 0; i < 25; ++i) {
    ProcessInfo facts;
    facts.pid = 1000 + i;
    facts.words.events = static_cast<std::uint64_t>(i);
    if (i == 0) facts.words.lost = 7;
    registry.add_process(facts);
  }
  const std::string text = summary_text({}, registry);
  EXPECT_LT(text.find("   1024 "), text.find("   1023 "));
  EXPECT_THAT(text, HasSubstr("   1005 "));
  EXPECT_THAT(text, Not(HasSubstr("   1004 ")));
  EXPECT_THAT(text, HasSubstr("and 5 more, with 10 events and 7 words lost\n"));
  EXPECT_THAT(text, HasSubstr("warning: 7 ring words"));
}

TEST(Summary, CountsTheFoldedToo) {
  Registry registry;
  for (std::size_t i = 0; i < Registry::remembered + 10; ++i) {
    ProcessInfo facts;
    facts.words.lost = 1;
    registry.retire_process(registry.add_process(facts));
  }
  const std::string text = summary_text({}, registry);
  EXPECT_THAT(text, HasSubstr("4,106 OCaml processes"));
  EXPECT_THAT(text, HasSubstr("and 4,086 more"));
  EXPECT_THAT(text, HasSubstr("warning: 4,106 ring words"));
}

TEST(Summary, EscapesWhatProgramsCallThemselves) {
  for (const std::string& hostile : test::hostile_strings()) {
    ProcessInfo facts;
    facts.comm = facts.version = hostile;
    Registry registry;
    registry.add_process(facts);
    for (const char c : summary_text({}, registry)) {
      ASSERT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    }
  }
}

}  // namespace
}  // namespace rtev
