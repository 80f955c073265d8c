// SPDX-License-Identifier: MIT
// Processes and domains beyond the memory are merged, and no figure is lost.
#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 18;

class StatsMemoryTest : public StatsTest {
 protected:
  /// To a Stats with little memory and to one with enough.
  void feed_both(const Events& events) {
    bounded.consume(events.batch(), world.registry);
    roomy.consume(events.batch(), world.registry);
  }
  void exit_both(std::uint64_t time, ProcessIndex index) {
    feed_both(Events(0).add_record(time, EventKind::process, ProcessRecord{index, 0, 0},
                                   static_cast<std::uint16_t>(ProcessAction::exit)));
  }
  /// One pause of each domain, of `pause_ns` + its number, from time + 100 on.
  Events pauses(std::uint32_t slot, std::uint64_t time, std::uint16_t domains, std::uint64_t pause_ns) const {
    Events events(slot);
    for (std::uint16_t domain = 0; domain < domains; ++domain) {
      events.add(time, Lifecycle::domain_spawn, 0, domain);
      events.add(time + 100, EventKind::begin, phase("minor"), 0, domain);
      events.add(time + 100, EventKind::counter, counter("minor_allocated"), 80, domain);
      events.add(time + 100 + pause_ns + domain, EventKind::end, phase("minor"), 0, domain);
      events.add(time + 9000, EventKind::user_unit, 1, 0, domain);
    }
    return events;
  }
  void expect_same_total() {
    const StatsReport one = bounded.report(world.registry), other = roomy.report(world.registry);
    EXPECT_EQ(one.process_count, other.process_count);
    using F = StatsFigures;
    for (std::uint64_t F::* const figure : {&F::wall_ns, &F::domain_ns, &F::gc_ns, &F::minor_collections,
                                            &F::minor_words, &F::user_events, &F::events, &F::lost_words, &F::losses})
      EXPECT_EQ(one.total.*figure, other.total.*figure);
  }
  static std::uint64_t domains_of(const StatsReport& report) {
    std::uint64_t domains = 0;
    for (const ProcessStats& process : report.processes) domains += process.domains.size() + process.other_domain_count;
    return domains;
  }

  Stats bounded{{.max_bytes = max_bytes}};
  Stats roomy{{.ended_domains = 10'000, .max_bytes = std::size_t{1} << 30}};
};

TEST_F(StatsMemoryTest, DomainsOfARunningProcessWithLeastTimeAreMerged) {
  feed_both(pauses(world.slot, 1000, 1000, 10));
  EXPECT_LE(bounded.memory_bytes(), max_bytes);
  EXPECT_GT(roomy.memory_bytes(), 4 * max_bytes);
  expect_same_total();
  const StatsReport report = bounded.report(world.registry);
  const ProcessStats& process = report.processes.at(0);
  EXPECT_EQ(domains_of(report), 1000);
  EXPECT_GT(process.other_domain_count, 800);
  EXPECT_EQ(process.domains.front().domain, 0) << "it counts the collections";
  EXPECT_FALSE(process.figures.missing.merged);
  EXPECT_EQ(process.domains.back().domain, 999) << "it has most time";
}

TEST_F(StatsMemoryTest, MergedDomainsGoOnToBeCounted) {
  feed_both(pauses(world.slot, 1000, 1000, 10));
  Events more(world.slot);
  const auto add_each = [&](std::uint16_t step, std::uint16_t first, const auto& add) {
    for (std::uint16_t domain = first; domain < 1000; domain = static_cast<std::uint16_t>(domain + step)) add(domain);
  };
  add_each(1, 0, [&](std::uint16_t domain) { more.add(20'000, EventKind::begin, phase("minor"), 0, domain); });
  add_each(3, 1,
           [&](std::uint16_t domain) { more.add_record(20'010, EventKind::lost, Loss{5, 20'005, 20'010}, 0, domain); });
  add_each(3, 0, [&](std::uint16_t domain) { more.add(20'100, EventKind::end, phase("minor"), 0, domain); });
  add_each(5, 0, [&](std::uint16_t domain) { more.add(20'200, Lifecycle::domain_terminate, 0, domain); });
  add_each(10, 0, [&](std::uint16_t domain) { more.add(20'300, Lifecycle::domain_spawn, 0, domain); });
  more.add(30'000, EventKind::user_unit, 1);
  bounded.consume(more.batch(), world.registry);
  roomy.consume(more.batch(), world.registry);
  const StatsFigures one = bounded.report(world.registry).total, other = roomy.report(world.registry).total;
  EXPECT_EQ(one.domain_ns, other.domain_ns);
  EXPECT_EQ(one.events, other.events);
  EXPECT_EQ(one.losses, other.losses);
  EXPECT_LE(one.gc_ns, other.gc_ns) << "of pauses that a loss cut, what is known of merged domains is less";
  EXPECT_GT(one.gc_ns, other.gc_ns - 1000 * 10);
  EXPECT_TRUE(one.missing.any());
  EXPECT_EQ(one.minor_collections, other.minor_collections);
  exit_both(40'000, world.process);
  EXPECT_EQ(bounded.report(world.registry).total.domain_ns, roomy.report(world.registry).total.domain_ns);
}

TEST_F(StatsMemoryTest, ProcessesThatComeAndGoAreMergedAndOthersStay) {
  feed_both(pauses(world.slot, 1000, 2, 5000));
  for (std::uint64_t i = 0; i < 50; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = static_cast<std::int32_t>(100 + i);
    const ProcessIndex index = world.registry.add_process(info);
    feed_both(pauses(world.add_ring(index), 20'000 * (i + 1), 256, 10));
    exit_both(20'000 * (i + 1) + 10'000, index);
    EXPECT_LE(bounded.memory_bytes(), max_bytes);
  }
  expect_same_total();
  const StatsReport report = bounded.report(world.registry);
  EXPECT_GT(report.other_process_count, 40);
  const auto found = std::ranges::find(report.processes, pid, &ProcessStats::pid);
  ASSERT_NE(found, report.processes.end());
  EXPECT_EQ(found->domains.size(), 2);
  EXPECT_LT(bounded.report_json(world.registry).size(), 2 * max_bytes);
}

TEST_F(StatsMemoryTest, TooManyRunningProcessesLoseTheirCountOfCollections) {
  for (int i = 0; i < 200; ++i) {
    const ProcessIndex index = world.registry.add_process(World::default_info());
    feed_both(pauses(world.add_ring(index), 1000, 1, 10));
  }
  const StatsFigures total = bounded.report(world.registry).total;
  EXPECT_TRUE(total.missing.merged);
  EXPECT_EQ(total.events, roomy.report(world.registry).total.events);
  EXPECT_EQ(total.gc_ns, roomy.report(world.registry).total.gc_ns);
}

}  // namespace
}  // namespace rtev::test
