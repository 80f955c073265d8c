// SPDX-License-Identifier: MIT
#include "formats/text/run_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>

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
  EXPECT_EQ(summary_text(quiet_summary(), world.registry), test::golden("formats/text/golden/summary_clean.txt"));
}

TEST(Summary, OfARunWithAllWarnings) {
  World world;
  ProcessInfo& info = world.registry.process(world.process);
  info.words = {.written = 1'100, .delivered = 0, .lost = 1'000, .corrupt = 100};
  info.ring = RingState::shared;
  RunSummary summary = quiet_summary();
  summary.drops = {{"switch", 12'345}, {"wakeup", 0}, {"exit", 1}, {"limited", 1}, {"unprobed", 2}};
  summary.rings_missed = 3;
  summary.forced = 2;
  summary.late = 1;
  EXPECT_EQ(summary_text(summary, world.registry), test::golden("formats/text/golden/summary_warnings.txt"));
  summary.complete = false;
  EXPECT_THAT(summary_text(summary, world.registry), HasSubstr("warning: the recording is truncated"));
}

TEST(Summary, IsCleanOnlyWithoutAnyLoss) {
  const auto text_after = [](const std::function<void(ProcessInfo&, RunSummary&)>& change) {
    World world;
    RunSummary summary = quiet_summary();
    change(world.registry.process(world.process), summary);
    return summary_text(summary, world.registry);
  };
  EXPECT_THAT(text_after([](ProcessInfo&, RunSummary&) {}), HasSubstr("\nnothing lost, nothing dropped\n"));
  const std::function<void(ProcessInfo&, RunSummary&)> losses[] = {
      [](ProcessInfo& info, RunSummary&) { info.words.lost = 1; },
      [](ProcessInfo& info, RunSummary&) { info.words.corrupt = 1; },
      [](ProcessInfo& info, RunSummary&) { info.ring = RingState::shared; },
      [](ProcessInfo&, RunSummary& summary) { summary.rings_missed = 1; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{"exec", 1}}; },
      [](ProcessInfo&, RunSummary& summary) { summary.drops = {{std::string(RunSummary::limited), 1}}; },
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

TEST(Summary, ShowsTheMostActiveAndCountsTheRest) {
  Registry registry;
  for (int i = 0; i < 25; ++i) {
    ProcessInfo info;
    info.pid = 1000 + i;
    info.words.events = static_cast<std::uint64_t>(i);
    if (i == 0) info.words.lost = 7;
    registry.add_process(info);
  }
  const std::string text = summary_text({}, registry);
  EXPECT_LT(text.find("   1024 "), text.find("   1023 "));
  EXPECT_THAT(text, HasSubstr("   1005 "));
  EXPECT_THAT(text, Not(HasSubstr("   1004 ")));
  EXPECT_THAT(text, HasSubstr("and 5 more, with 10 events and 7 words lost\n"));
  EXPECT_THAT(text, HasSubstr("warning: 7 ring words"));
}

TEST(Summary, CountsProcessesThatAreNoLongerListed) {
  Registry registry;
  for (std::size_t i = 0; i < Registry::remembered + 10; ++i) {
    ProcessInfo info;
    info.words.lost = 1;
    registry.retire_process(registry.add_process(info));
  }
  const std::string text = summary_text({}, registry);
  EXPECT_THAT(text, HasSubstr("4,106 OCaml processes"));
  EXPECT_THAT(text, HasSubstr("and 4,086 more"));
  EXPECT_THAT(text, HasSubstr("warning: 4,106 ring words"));
}

TEST(Summary, EscapesNamesOfPrograms) {
  for (const std::string& hostile : test::hostile_strings()) {
    ProcessInfo info;
    info.comm = info.version = hostile;
    Registry registry;
    registry.add_process(info);
    for (const char c : summary_text({}, registry)) {
      ASSERT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    }
  }
}

}  // namespace
}  // namespace rtev
