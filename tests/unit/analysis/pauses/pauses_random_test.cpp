// SPDX-License-Identifier: MIT
// Streams that make no sense: sums hold, memory is bounded, nothing breaks.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

class Chaos {
 public:
  explicit Chaos(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random_);
  }
  Thread thread() {
    const auto tid = static_cast<std::int32_t>(4242 + below(6));
    Thread thread = below(4) == 0 ? competitor() : a_thread(4242, tid, tid - 4242);
    if (below(8) == 0) thread.role = ThreadRole::backup;
    if (below(16) == 0) thread.domain = -1;
    return thread;
  }
  std::uint16_t phase() {
    constexpr std::array ids{phase_major,         phase_minor,   phase_interrupt, phase_slice, phase_minor_barrier,
                             phase_start_barrier, phase_handler, phase_leader,    phase_wait,  std::uint16_t{4000}};
    return ids[below(ids.size())];
  }

 private:
  std::mt19937 random_;
};

void expect_sums(const PauseDetails& pause) {
  const std::uint64_t duration = pause.duration_ns();
  EXPECT_EQ(pause.time.total(), duration);
  EXPECT_EQ(pause.start_wait_ns + pause.finish_wait_ns + pause.besides.total(), duration);
  std::uint64_t waits = pause.scheduling.other_competitors_ns() + pause.scheduling.unknown_competitors_ns();
  for (const SchedulingDetail::CpuCompetitor& competitor : pause.scheduling.competitors()) waits += competitor.wait.ns;
  EXPECT_EQ(waits, pause.time.runnable);
  EXPECT_EQ(pause.blocked.barrier + pause.blocked.section + pause.blocked.other, pause.time.blocked());
  std::uint64_t own = 0;
  for (const PhaseTree::Node& node : pause.phases.nodes()) own += node.own_ns;
  if (!pause.late) {
    EXPECT_EQ(own, duration);
  }
  EXPECT_LE(blame_of(pause).ns, duration);
  for (const PauseSection& part : pause.sections) {
    for (const StwDomain& domain : part.section->domains) {
      if (part.section->leader_seen && domain.arrived_ns > part.section->begin_ns) {
        EXPECT_EQ(domain.before.time.total(), domain.arrived_ns - part.section->begin_ns);
      }
      EXPECT_EQ(domain.pause_time.total(), domain.pause_ns);
    }
  }
}

class PausesChaos : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PausesChaos, SumsAreExact) {
  World world;
  Chaos chaos(GetParam());
  Pauses pauses({.top = 20, .min_ns = 0});
  pauses.header({.start_ns = 1});
  std::uint64_t time = 1'000;
  for (int round = 0; round < 40; ++round) {
    Events events(world.slot);
    for (int i = 0; i < 200; ++i) {
      time += chaos.below(50);
      const auto domain = static_cast<std::uint16_t>(chaos.below(5));
      const bool late = chaos.below(50) == 0;
      const std::uint64_t at = late ? time - chaos.below(900) : time;
      const std::uint32_t kind = chaos.below(100);
      if (kind < 35) {
        events.add(at, EventKind::begin, chaos.phase(), 0, domain);
      } else if (kind < 70) {
        events.add(at, EventKind::end, chaos.phase(), 0, domain);
      } else if (kind < 85) {
        events.add_record(at, EventKind::sched_switch,
                          SchedSwitch{.cpu = chaos.below(3),
                                      .state = static_cast<LeftState>(chaos.below(8)),
                                      .prev = chaos.thread(),
                                      .next = chaos.thread()});
      } else if (kind < 97) {
        events.add_record(at, EventKind::wakeup,
                          Wakeup{.cpu = chaos.below(3), .woken = chaos.thread(), .by = chaos.thread()});
      } else if (kind < 98) {
        events.add_record(at, EventKind::lost, Loss{.words = 5, .from_ns = at - chaos.below(500), .to_ns = at}, 0,
                          domain);
      } else {
        events.add(at, chaos.below(2) ? Lifecycle::domain_spawn : Lifecycle::domain_terminate, 0, domain);
      }
      if (late) events.late();
    }
    pauses.consume(events.batch(), world.registry);
    EXPECT_LE(pauses.report().worst.size(), 20U);
    for (const PauseDetails* pause : pauses.report().worst) expect_sums(*pause);
  }
  pauses.summary({.end_ns = time}, world.registry);
  const PausesReport report = pauses.report();
  EXPECT_GT(report.counts.pauses, 20U);
  EXPECT_TRUE(std::ranges::is_sorted(report.worst, std::ranges::greater{},
                                     [](const PauseDetails* pause) { return pause->duration_ns(); }));
  EXPECT_FALSE(pauses.report_text().empty());
  const auto json = nlohmann::json::parse(pauses.report_json());
  ASSERT_EQ(json["pauses"].size(), report.worst.size());
  for (const auto& pause : json["pauses"]) {
    std::uint64_t sum = 0;
    for (const auto& part : pause["time_ns"]) sum += part.is_null() ? 0 : part.get<std::uint64_t>();
    EXPECT_EQ(sum, pause["duration_ns"].get<std::uint64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PausesChaos, testing::Range(0U, 24U));

TEST_F(PausesTest, VeryManyPhasesFoldIntoABoundedTree) {
  span(1'000, 900'000, phase_major);
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    span(2'000 + 10 * i, 2'005 + 10 * i, phase_slice);
  }
  for (std::uint16_t i = 0; i < 3'000; ++i) {
    span(600'000 + 10U * i, 600'005 + 10U * i, static_cast<std::uint16_t>(1'000 + i));
  }
  const PausesReport report = play();
  ASSERT_EQ(report.worst.size(), 1U);
  const PhaseTree& phases = report.worst[0]->phases;
  EXPECT_EQ(phases.nodes().size(), PhaseTree::max_nodes);
  EXPECT_EQ(phases.nodes()[1].count, 50'000U);
  EXPECT_EQ(phases.nodes()[1].total_ns, 250'000U);
  EXPECT_EQ(phases.folded(), 3'000U - (PhaseTree::max_nodes - 2));
  expect_sums(*report.worst[0]);
}

TEST_F(PausesTest, VeryDeepPhasesAreBounded) {
  span(1'000, 3'000, phase_major);
  for (std::uint64_t i = 0; i < 200; ++i) begin(1'001 + i, phase_slice);
  for (std::uint64_t i = 0; i < 200; ++i) end(2'000 + i, phase_slice);
  const PausesReport report = play();
  ASSERT_EQ(report.worst.size(), 1U);
  EXPECT_LE(report.worst[0]->phases.nodes().size(), PhaseTree::max_nodes);
  EXPECT_GT(report.worst[0]->phases.folded(), 0U);
  expect_sums(*report.worst[0]);
}

TEST_F(PausesTest, ASectionOfVeryManyDomainsIsBounded) {
  span(1'000, 9'000, phase_leader);
  for (std::uint16_t domain = 1; domain < 1'000; ++domain) {
    span(2'000 + domain, 4'000 + domain, phase_handler, domain);
  }
  const PausesReport report = play();
  ASSERT_GE(report.worst.size(), 1U);
  const StwSection& section = *report.worst[0]->sections.at(0).section;
  EXPECT_EQ(section.domains.size(), StwSection::max_domains);
  EXPECT_EQ(section.unnamed, 1'000U - StwSection::max_domains);
  EXPECT_THAT(pauses->report_text(), testing::HasSubstr("stop-the-world of 1,000 domains"));
}

TEST_F(PausesTest, APauseOfVeryManySectionsKeepsTheLongest) {
  span(1'000, 900'000, phase_major);
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    span(2'000 + 100 * i, 2'010 + 100 * i + i % 50, phase_leader);
  }
  const PausesReport report = play();
  ASSERT_EQ(report.worst.size(), 1U);
  EXPECT_EQ(report.worst[0]->section_count, 3'000U);
  ASSERT_EQ(report.worst[0]->sections.size(), PauseDetails::max_sections);
  for (const PauseSection& part : report.worst[0]->sections) EXPECT_EQ(part.time_ns, 59U);
}

TEST_F(PausesTest, VeryManyCompetitorsAreBounded) {
  switches(100, enters(main_thread(), 0));
  span(1'000, 900'000, phase_major);
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const Thread competitor =
        a_thread(static_cast<std::int32_t>(10'000 + i), static_cast<std::int32_t>(10'000 + i), -1, "competitor", false);
    preempted(2'000 + 1'000 * i, 2'001 + 1'001 * i, competitor);
    all += 1 + i;
  }
  const PausesReport report = play();
  ASSERT_EQ(report.worst.size(), 1U);
  const SchedulingDetail& detail = report.worst[0]->scheduling;
  EXPECT_EQ(detail.competitors().size(), SchedulingDetail::max_competitors);
  std::uint64_t told = detail.other_competitors_ns();
  for (const SchedulingDetail::CpuCompetitor& competitor : detail.competitors()) told += competitor.wait.ns;
  EXPECT_EQ(told, all);
  EXPECT_EQ(report.worst[0]->time.runnable, all);
  EXPECT_EQ(detail.competitors().front().wait.ns, 400U);
}

}  // namespace
}  // namespace rtev::test
