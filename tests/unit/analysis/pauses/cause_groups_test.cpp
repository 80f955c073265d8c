// SPDX-License-Identifier: MIT
// Which pauses are long, and what they have in common.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <ranges>

#include "base/folding.hpp"
#include "base/text_format.hpp"
#include "base/utf8.hpp"
#include "support/files.hpp"
#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr, testing::SizeIs;

class CauseGroupsTest : public PausesTest {
 protected:
  static constexpr std::uint64_t us = 1'000;

  CauseGroupsTest() {
    sees_all_switches();
    switches(100, enters(main_thread(), 0));
  }

  /// Of domain 0, which works.
  void work(std::uint64_t ns, std::uint16_t phase = phase_major) {
    span(now_, now_ + ns, phase);
    now_ += ns + us;
  }
  /// Of domain 0, which has no cpu for all but a microsecond.
  void no_cpu(std::uint64_t ns, const Thread& by = competitor()) {
    preempted(now_ + 1, now_ + ns - us, by);
    work(ns);
  }
  /// The words of the group behind its figures.
  std::string name_of(const CauseGroup& group) const { return fmt::format("{}", CauseName{group}); }

 private:
  std::uint64_t now_ = 1'000'000;
};

TEST_F(CauseGroupsTest, AStepThatEnoughPausesReachIsLong) {
  for (int i = 0; i < 100; ++i) work(30 * us);
  for (int i = 0; i < 8; ++i) work(250 * us);
  for (int i = 0; i < 3; ++i) work(1'500 * us);
  const LongPauses found = play().long_pauses;
  EXPECT_EQ(found.least_ns, 200 * us);
  EXPECT_EQ(found.count, 11u);
  ASSERT_THAT(found.groups, SizeIs(1));
  EXPECT_EQ(found.groups[0].count, 11u);
  EXPECT_EQ(found.groups[0].least_ns, 250 * us);
  EXPECT_EQ(found.groups[0].greatest_ns, 1'500 * us);
  EXPECT_EQ(found.groups[0].total_ns, (8 * 250 + 3 * 1'500) * us);
  EXPECT_EQ(found.groups[0].worst->duration_ns(), 1'500 * us);
}

TEST_F(CauseGroupsTest, FewPausesAreAllLong) {
  for (int i = 0; i < 9; ++i) work(10 * us + static_cast<std::uint64_t>(i));
  const LongPauses found = play().long_pauses;
  EXPECT_EQ(found.least_ns, 0u);
  EXPECT_EQ(found.count, 9u);
}

TEST_F(CauseGroupsTest, ALeastLengthDecides) {
  for (int i = 0; i < 20; ++i) work(100 * us);
  work(333 * us);
  const LongPauses found = play({.min_ns = 333 * us}).long_pauses;
  EXPECT_EQ(found.least_ns, 333 * us);
  EXPECT_EQ(found.count, 1u);
}

TEST_F(CauseGroupsTest, PausesAreGroupedByCauseAndPhase) {
  for (int i = 0; i < 3; ++i) no_cpu(100 * us);
  work(40 * us, phase_major);
  work(50 * us, phase_slice);
  work(60 * us, phase_slice);
  const LongPauses found = play().long_pauses;
  ASSERT_THAT(found.groups, SizeIs(3)) << "those with most time first";
  EXPECT_EQ(name_of(found.groups[0]), "no CPU behind \"hog\"");
  EXPECT_EQ(found.groups[0].count, 3u);
  EXPECT_EQ(name_of(found.groups[1]), "own work, most of the pause in major_slice");
  EXPECT_EQ(found.groups[1].count, 2u);
  EXPECT_EQ(name_of(found.groups[2]), "own work, most of the pause in major");
  EXPECT_EQ(found.ungrouped, 0u);
}

TEST_F(CauseGroupsTest, WhoHadTheCpuInLongPausesIsNamed) {
  for (int i = 0; i < 3; ++i) no_cpu(100 * us, a_thread(77, 77, -1, "cc1plus", false));
  no_cpu(900 * us, a_thread(4242, 4243));
  no_cpu(200 * us, a_thread(77, 77, -1, "cc1plus", false));
  for (int i = 0; i < 30; ++i) no_cpu(2 * us, a_thread(78, 78, -1, "short", false));
  const LongPauses found = play({.min_ns = 50 * us}).long_pauses;
  ASSERT_THAT(found.groups, SizeIs(1));
  EXPECT_EQ(found.groups[0].count, 5u);
  EXPECT_EQ(name_of(found.groups[0]), "no CPU behind its own threads and \"cc1plus\"");
  EXPECT_EQ(found.groups[0].holders[1], (CpuHolder{.comm = "cc1plus", .ns = 500 * us - 4 * (us + 1)}));
}

TEST_F(CauseGroupsTest, TheDomainThatWasLateIsNamed) {
  switches(200, enters(other_thread(), 1));
  const std::uint64_t begin_ns = 10'000'000;
  span(begin_ns, begin_ns + 500 * us, phase_leader);
  span(begin_ns + 10, begin_ns + 400 * us, phase_start_barrier);
  span(begin_ns + 399 * us, begin_ns + 450 * us, phase_handler, 1);
  span(begin_ns + 399 * us + 1, begin_ns + 399 * us + 2, phase_start_barrier, 1);
  const LongPauses found = play().long_pauses;
  ASSERT_THAT(found.groups, SizeIs(2));
  EXPECT_EQ(name_of(found.groups[0]), "domain 1 late to stop: it ran on to its next safepoint");
}

TEST_F(CauseGroupsTest, ADomainThatReportsItsEndAfterThePauseIsNamed) {
  const std::uint64_t begin_ns = 10'000'000;
  span(begin_ns, begin_ns + 455 * us, phase_leader);
  span(begin_ns + 10 * us, begin_ns + 100 * us, phase_minor);
  span(begin_ns + 100 * us, begin_ns + 450 * us, phase_minor_barrier);
  for (const auto& [domain, end_ns] : {std::pair<std::uint16_t, std::uint64_t>{1, 300 * us}, {2, 460 * us}}) {
    span(begin_ns + 5 * us, begin_ns + 470 * us, phase_handler, domain);
    span(begin_ns + 10 * us, begin_ns + end_ns, phase_minor, domain);
  }
  const LongPauses found = play().long_pauses;
  const auto slow =
      std::ranges::find_if(found.groups, [](const CauseGroup& group) { return group.key.cause == Cause::slow_domain; });
  ASSERT_NE(slow, found.groups.end());
  EXPECT_EQ(slow->key.domain, 2);
  EXPECT_EQ(blame_of(*slow->worst).domain->domain, 2u) << "as its example";
}

TEST_F(CauseGroupsTest, ProcessesOfOneProgramAreOneGroup) {
  Pauses all({});
  for (int i = 0; i < 3; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = 10'000 + i;
    const Events pause = std::move(Events(world.add_ring(world.registry.add_process(std::move(info))))
                                       .add(1'000'000, EventKind::begin, phase_major)
                                       .add(2'000'000, EventKind::end, phase_major));
    all.consume(pause.batch(), world.registry);
  }
  const PausesReport report = all.report();
  ASSERT_THAT(report.long_pauses.groups, SizeIs(1));
  EXPECT_TRUE(report.long_pauses.groups[0].several_processes);
  EXPECT_THAT(report_text(report), HasSubstr("\n  3 × server: "));
}

TEST_F(CauseGroupsTest, GroupsAreBounded) {
  constexpr int processes = 400;
  Events events(world.slot);
  Pauses all({});
  for (int i = 0; i < processes; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = 10'000 + i;
    info.comm = "server" + std::to_string(i);
    const std::uint32_t ring = world.add_ring(world.registry.add_process(std::move(info)));
    const std::uint64_t begin_ns = 1'000'000 * static_cast<std::uint64_t>(i + 1);
    const Events pause =
        std::move(Events(ring)
                      .add(begin_ns, EventKind::begin, phase_major)
                      .add(begin_ns + us * static_cast<std::uint64_t>(i + 1), EventKind::end, phase_major));
    all.consume(pause.batch(), world.registry);
  }
  const PausesReport report = all.report();
  EXPECT_EQ(report.long_pauses.count, 201u) << "of 200 µs and longer";
  EXPECT_EQ(report.long_pauses.groups.size() + report.long_pauses.ungrouped, 201u);
  EXPECT_EQ(report.long_pauses.groups.front().worst->duration_ns(), processes * us) << "the longest is never dropped";
}

std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  for (const auto line : std::views::split(text, '\n'))
    widest = std::max(widest, columns_of(std::string_view(line.begin(), line.end())));
  return widest;
}

TEST_F(CauseGroupsTest, TheReportFitsAScreen) {
  for (int i = 0; i < 30; ++i) {
    no_cpu(5'000 * us);
    work(4'000 * us, phase_major);
    work(6'000 * us, phase_slice);
    work(7'000 * us, phase_interrupt);
    work(8'000 * us, phase_minor_barrier);
    work(20 * us);
  }
  drops(1'000'000, 2'000'000, 17);
  PausesReport report = play({.input = "'a recording.fxt'"});
  report.full = false;
  const std::string text = report_text(report);
  EXPECT_LE(std::ranges::count(text, '\n'), 23) << text;
  EXPECT_LE(widest_line(text), 100u) << text;
  EXPECT_EQ(text, golden("analysis/golden/pauses_screen.txt"));
  // The setting is for the rest of the process.
  constexpr std::size_t narrow = 60;
  EXPECT_EXIT(
      {
        fit_terminal(narrow);
        std::_Exit(widest_line(report_text(report)) <= narrow ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rtev::test
