// SPDX-License-Identifier: MIT
#include "stream/period_figures.hpp"

#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

Accounting words_of(const Registry& registry) {
  Accounting sum = registry.others().words;
  for (const ProcessInfo& info : registry.processes()) sum += info.words;
  return sum;
}

RunSummary summary_with(std::uint64_t begins, std::uint64_t drops) {
  RunSummary summary;
  summary.start_ns = 10;
  summary.end_ns = 1000;
  summary.events[static_cast<std::size_t>(EventKind::begin)] = begins;
  summary.drops = {{.kind = "switch", .count = drops}};
  return summary;
}

TEST(PeriodFigures, FirstPartIsThatOfTheRun) {
  World world;
  world.registry.process(world.process).words = {.written = 9, .delivered = 5, .unread = 4};
  const PeriodFigures figures;
  EXPECT_FALSE(figures.has_begun());
  EXPECT_EQ(figures.summary(summary_with(7, 1)).start_ns, 10u);
  const Accounting words = words_of(figures.registry(world.registry, false));
  EXPECT_EQ(words.written, 5u) << "unread words belong to the next part";
  EXPECT_TRUE(words.balanced());
}

TEST(PeriodFigures, PartsAddUpToTheRun) {
  World world;
  ProcessInfo& info = world.registry.process(world.process);
  PeriodFigures figures;
  info.words = {.written = 100, .delivered = 50, .lost = 10, .unread = 40, .events = 20};
  const Accounting first = words_of(figures.registry(world.registry, false));
  info.missed = {.file_system = 1, .gone = 2};
  info.left_alone = {.times = 1, .ns = 1000};
  RunSummary so_far = summary_with(20, 3);
  so_far.announcers = {{.pid = 1, .dropped = 3}, {.pid = 2, .dropped = 2}};
  figures.begin(500, so_far, world.registry);
  info.missed = {.file_system = 1, .no_answer = 1, .memory = 1, .gone = 5};
  info.left_alone = {.times = 3, .ns = 7000};
  info.words = {.written = 130, .delivered = 105, .lost = 10, .corrupt = 5, .unread = 10, .events = 44};
  const Registry last = figures.registry(world.registry, true);
  const Accounting words = words_of(last);
  EXPECT_TRUE(first.balanced() && words.balanced());
  EXPECT_EQ(first.written + words.written, 130u);
  EXPECT_EQ(words.delivered, 55u);
  EXPECT_EQ(words.unread, 10u);
  EXPECT_EQ(words.events, 24u);
  const MissedRings missed = last.processes().front().missed;
  EXPECT_EQ(missed.file_system, 0u);
  EXPECT_EQ(missed.gone, 3u);
  EXPECT_EQ(missed.sum(), 5u);
  EXPECT_EQ(last.processes().front().left_alone.times, 2u);
  EXPECT_EQ(last.processes().front().left_alone.ns, 6000u);
  EXPECT_NE(last.ring(world.slot), nullptr) << "names of events are those of the run";

  RunSummary run = summary_with(44, 5);
  run.announcers = {{.pid = 1, .dropped = 3}, {.pid = 2, .dropped = 9}, {.pid = 3, .dropped = 4}};
  const RunSummary part = figures.summary(run);
  ASSERT_EQ(part.announcers.size(), 2u) << "not the one without more drops";
  EXPECT_EQ(part.announcers.at(0).dropped, 7u);
  EXPECT_EQ(part.announcers.at(1).dropped, 4u);
  EXPECT_EQ(part.start_ns, 500u);
  EXPECT_EQ(part.events[static_cast<std::size_t>(EventKind::begin)], 24u);
  EXPECT_EQ(part.drops.at(0).count, 2u);
}

TEST(PeriodFigures, LeaveOutWhatEndedBeforeThePartBefore) {
  World world;
  PeriodFigures figures;
  world.registry.process(world.process).ended = true;
  figures.begin(1, {}, world.registry);
  EXPECT_EQ(std::ranges::distance(figures.registry(world.registry, true).processes()), 1) << "it may have late events";
  figures.begin(2, {}, world.registry);
  EXPECT_EQ(std::ranges::distance(figures.registry(world.registry, true).processes()), 0);
}

TEST(PeriodFigures, CountProcessesThatAreNoLongerKept) {
  World world;
  PeriodFigures figures;
  std::uint64_t written = 0;
  const auto end_some = [&] {
    for (std::size_t i = 0; i < Registry::remembered; ++i) {
      const ProcessIndex index = world.registry.add_process(World::default_info());
      world.registry.process(index).words = {.written = 3, .delivered = 3};
      world.registry.process(index).ended = true;
      world.registry.retire_process(index);
    }
  };
  for (int part = 0; part < 4; ++part) {
    end_some();
    written += words_of(figures.registry(world.registry, false)).written;
    figures.begin(1, {}, world.registry);
  }
  EXPECT_EQ(written, 4 * 3 * Registry::remembered);
  EXPECT_EQ(written, words_of(world.registry).written);
}

}  // namespace
}  // namespace rtev::test
