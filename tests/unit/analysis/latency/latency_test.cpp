// SPDX-License-Identifier: MIT
// What pauses are counted, for whom, and what their threads did.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

#include "analysis/stats/stats_sink.hpp"
#include "unit/analysis/latency/latency_fixture.hpp"

namespace rtev {
namespace {

using test::a_thread, test::competitor, test::enters, test::leaves;
using test::Events, test::phase_major, test::phase_minor;
using testing::HasSubstr, testing::Not;

using nlohmann::json;

TEST_F(LatencyTest, FiguresAreThoseOfThePauses) {
  for (std::uint64_t i = 1; i <= 100; ++i) pause(i * 1000, i);
  const json all = report()["all"];
  EXPECT_THAT(all, HasMembers(R"({"count":100,"total_ns":5050,"mean_ns":50.5,"min_ns":1,"max_ns":100,
      "percentiles_ns":{"25":25,"50":50,"75":75,"90":90,"99":99,"99.5":null,"99.9999":null,"100":100},
      "lower_bound":false})"_json));
  EXPECT_NEAR(all["stddev_ns"].get<double>(), 28.866070, 1e-6);
  EXPECT_EQ(all["percentiles_ns"].size(), latency_percentiles.size());
}

TEST_F(LatencyTest, ProcessesAndDomainsAreToldApart) {
  const ProcessIndex other = add_process(77, "other");
  const std::uint32_t slot = world.add_ring(other);
  pause(100, 10, 0);
  pause(200, 30, 3);
  pause(300, 40, 3);
  pause(400, 500, 0, phase_major, slot);
  // The process with most time comes first.
  EXPECT_THAT(report(), HasMembers(R"({"type":"latency","schema":1,"report":"run","all":{"count":4,"max_ns":500},
      "processes":[{"pid":77,"comm":"other"},
                   {"exe":"/usr/bin/server","count":3,"total_ns":80,
                    "domains":[{"domain":0,"count":1},{"domain":3,"mean_ns":35.0}]}],
      "others":{"domains":0}})"_json));
}

TEST_F(LatencyTest, WithoutPausesThereAreNoFiguresAndNoNonsense) {
  const json found = report();
  EXPECT_EQ(found["all"]["count"], 0);
  EXPECT_FALSE(found["all"].contains("mean_ns"));
  EXPECT_FALSE(found["all"].contains("percentiles_ns"));
  EXPECT_TRUE(found["processes"].empty());
  EXPECT_THAT(text(), HasSubstr("0 GC pauses of 0 processes"));
  EXPECT_THAT(text(), Not(HasSubstr("nan")));
}

TEST_F(LatencyTest, PausesAreSplitIntoWhatTheThreadDid) {
  const Thread thread = a_thread(4242, 4242, 0);
  add(10, enters(thread));
  pause(20, 5);
  begin(100);
  add(130, leaves(thread, LeftState::preempted, 0, competitor()));
  add(180, enters(thread, 0, competitor()));
  add(190, leaves(thread, LeftState::sleeping));
  add(290, enters(thread));
  end(300);
  EXPECT_THAT(report(), HasMembers(R"({"scheduler_seen":true,"all":{"count":2,"total_ns":205,
      "time_ns":{"on_cpu":55,"runnable":50,"sleeping":100,"uninterruptible":0,"stopped":0,"unknown":0},
      "on_cpu":{"count":2,"max_ns":50,"min_ns":5},"runnable":{"max_ns":50,"percentiles_ns":{"50":0}},
      "blocked":{"max_ns":100}}})"_json));
}

TEST_F(LatencyTest, WhatIsNotKnownIsInNoDistributionOfParts) {
  const Thread thread = a_thread(4242, 4242, 0);
  begin(100);
  add(130, enters(thread));
  end(150);
  pause(200, 7);
  // Late: what the scheduler did then has been folded in already.
  feed(Events{world.slot}
           .add(start + 300, EventKind::begin, phase_major, 0, 0, flag_late)
           .add(start + 310, EventKind::end, phase_major));
  EXPECT_THAT(report()["all"], HasMembers(R"({"count":3,"on_cpu":{"count":1,"total_ns":7},
      "time_ns":{"unknown":40,"on_cpu":27}})"_json));
  EXPECT_THAT(text(), HasSubstr("what threads did is unknown for 40ns of 67ns in pauses (60%)"));
}

TEST_F(LatencyTest, NoUnknownTimeIsNoLine) {
  const Thread thread = a_thread(4242, 4242, 0);
  add(10, enters(thread));
  add(20, leaves(thread, LeftState::sleeping));
  add(30, leaves(thread, LeftState::sleeping));  // but it was not there: a gap before the pause
  add(60, enters(thread));
  begin(100);
  end(150);
  EXPECT_THAT(report()["all"]["time_ns"], HasMembers(R"({"unknown":0,"on_cpu":50})"_json));
  EXPECT_THAT(text(), Not(HasSubstr("what threads did is unknown")));
}

TEST_F(LatencyTest, ShortOnesAreOnlyCounted) {
  make({.min_ns = 100});
  pause(1000, 99);
  pause(2000, 100);
  pause(3000, 500);
  EXPECT_THAT(report()["all"], HasMembers(R"({"count":2,"below_min":1,"min_ns":100})"_json));
  EXPECT_THAT(text(), HasSubstr("2 GC pauses of 100ns and longer of server/4242"));
}

TEST_F(LatencyTest, APhaseCanBeAskedForInstead) {
  make({.phase = "minor"});
  begin(100, stw_leader);
  begin(110, phase_minor);
  end(150, phase_minor);
  end(200, stw_leader);
  begin(300, phase_minor);
  end(310, phase_minor);
  EXPECT_THAT(report(), HasMembers(R"({"phase":"minor","all":{"count":2,"max_ns":40}})"_json));
  EXPECT_THAT(text(), HasSubstr("2 spans of minor of server/4242"));
}

TEST_F(LatencyTest, WaitsOfSeveralThreadsOfADomainAreMatchedUp) {
  make({.phase = "domain_condition_wait"});
  begin(100, domain_wait);
  begin(110, domain_wait);
  end(120, domain_wait);
  end(150, domain_wait);
  EXPECT_EQ(report()["all"]["total_ns"], 10 + 50);
}

TEST_F(LatencyTest, OllysRuleIsAnOption) {
  constexpr std::uint16_t explicit_minor = 2;
  for (const PauseRule rule : {PauseRule::outermost, PauseRule::olly}) {
    make({.rule = rule});
    feed(Events{world.slot}
             .add(start + 100, EventKind::begin, explicit_minor)
             .add(start + 110, EventKind::begin, stw_leader)
             .add(start + 150, EventKind::end, stw_leader)
             .add(start + 200, EventKind::end, explicit_minor));
    EXPECT_EQ(report()["all"]["total_ns"], rule == PauseRule::olly ? 40 : 100);
    EXPECT_EQ(report()["rule"], rule == PauseRule::olly ? "olly" : "outermost");
  }
}

/// As the table of the guide says it: of the GC time of `stats` olly lacks the parts in sections that others lead, and
/// explicit collections outside of its phases.
TEST_F(LatencyTest, GcTimeIsThatOfOllyAndOfWhatItLeavesOut) {
  const auto id = [](std::string_view phase) {
    return static_cast<std::uint16_t>(find_phase(Family::since_5_3, phase).value());
  };
  struct Span {
    std::uint16_t domain, phase;
    std::uint64_t begin, end;
    bool operator==(const Span&) const = default;
  };
  const Span leader{0, id("stw_leader"), 100, 500}, minor{0, id("minor"), 150, 450}, slice{0, id("major"), 600, 700};
  const Span handler{1, id("stw_handler"), 120, 500}, inside{1, id("minor"), 150, 450},
      interrupt{1, id("interrupt_remote"), 800, 830}, call{0, id("explicit_gc_minor"), 900, 990},
      in_call{0, id("stw_leader"), 910, 980};
  const std::vector<Span> spans{leader, minor, slice, handler, inside, interrupt, call, in_call};
  struct Edge {
    std::uint64_t time;
    EventKind kind;
    Span of;
  };
  std::vector<Edge> edges;
  for (const Span& span : spans) {
    edges.push_back({span.begin, EventKind::begin, span});
    edges.push_back({span.end, EventKind::end, span});
  }
  std::ranges::stable_sort(edges, {}, &Edge::time);
  test::Events events{world.slot};
  for (const Edge& edge : edges) events.add(start + edge.time, edge.kind, edge.of.phase, 0, edge.of.domain);

  // By the definition: of each ring the spans of these phases that are in no other such one.
  const auto sum_of = [&](const std::vector<std::uint16_t>& phases) {
    const auto counts = [&](const Span& span) {
      return phases.empty() || std::ranges::find(phases, span.phase) != phases.end();
    };
    std::uint64_t sum = 0;
    for (const Span& span : spans) {
      const bool is_inner = std::ranges::any_of(spans, [&](const Span& other) {
        return other != span && counts(other) && other.domain == span.domain && other.begin <= span.begin &&
               span.end <= other.end;
      });
      if (counts(span) && !is_inner) sum += span.end - span.begin;
    }
    return sum;
  };
  const std::uint64_t olly = sum_of({id("major"), id("stw_leader"), id("interrupt_remote")}), all = sum_of({});
  make({.rule = PauseRule::olly});
  feed(events);
  EXPECT_EQ(report()["all"]["total_ns"], olly);
  Stats stats;
  stats.header({.start_ns = start});
  stats.consume(events.batch(), world.registry);
  const auto total = nlohmann::json::parse(stats.report_json(world.registry))["total"];
  EXPECT_EQ(total["gc_ns"], all);
  EXPECT_EQ(all - olly, (handler.end - handler.begin) + (call.end - call.begin) - (in_call.end - in_call.begin));
}

TEST_F(LatencyTest, LossesMakeFiguresLowerBounds) {
  const ProcessIndex other = add_process(77, "other");
  const std::uint32_t slot = world.add_ring(other);
  pause(100, 10);
  begin(200);
  lose(300, 1234);
  pause(400, 20);
  pause(500, 5, 0, phase_major, slot);
  EXPECT_THAT(report(), HasMembers(R"({"lower_bound":true,"all":{"count":3},
      "processes":[{"lower_bound":true,"lost_words":1234,"unfinished":{"lost":1},"domains":[{"lower_bound":true}]},
                   {"lower_bound":false}]})"_json));
  EXPECT_THAT(text(), HasSubstr("warning: lower bounds only: 1,234 words of rings lost, 1 pause cut by losses\n"));
}

TEST_F(LatencyTest, GapsOfProbesMakeFiguresLowerBounds) {
  pause(100, 10);
  lose(300, 0);
  lose(500, 0);
  EXPECT_THAT(report(), HasMembers(R"({"lower_bound":true,"all":{"lost_words":null},
      "processes":[{"unprobed":2,"domains":[{"lower_bound":true}]}]})"_json));
  EXPECT_THAT(text(), HasSubstr("warning: lower bounds only: 2 gaps while probes were off\n"));
}

TEST_F(LatencyTest, AProcessThatOnlyHasAGapIsTold) {
  lose(300, 0);
  EXPECT_THAT(report(), HasMembers(R"({"processes":[{"lower_bound":true}]})"_json));
}

TEST_F(LatencyTest, WhatTheEndCutsOffIsSaidButNoLowerBound) {
  pause(100, 10);
  begin(200);
  exit(world.process, 300);
  EXPECT_THAT(report(), HasMembers(R"({"all":{"count":1,"unfinished":{"ended":1}},"lower_bound":false,
      "processes":[{"ended":true}]})"_json));
}

TEST_F(LatencyTest, DomainNumbersThatAreUsedAgainAreCounted) {
  for (std::uint64_t life = 0; life < 3; ++life) {
    const std::uint64_t at = start + 1000 * (life + 1);
    feed(Events{world.slot}
             .add(at, Lifecycle::domain_spawn, 4242, 1)
             .add(at + 100, EventKind::begin, phase_major, 0, 1)
             .add(at + 110, EventKind::end, phase_major, 0, 1)
             .add(at + 200, EventKind::begin, phase_major, 0, 1)
             .add(at + 300, Lifecycle::domain_terminate, 4242, 1));
  }
  EXPECT_THAT(report()["processes"][0]["domains"][0], HasMembers(R"({"incarnations":3,"count":3,"total_ns":30})"_json))
      << "none lasts from one domain to the next";
}

TEST_F(LatencyTest, ManyProcessesArePutTogether) {
  make({.max_domains = 8});
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const ProcessIndex process = add_process(static_cast<std::int32_t>(1000 + i), "short");
    const std::uint32_t slot = world.add_ring(process);
    const std::uint64_t at = start + i * 1000;
    feed(Events{slot}.add(at, EventKind::begin, phase_major).add(at + i + 1, EventKind::end, phase_major));
    total += i + 1;
    exit(process, i * 1000 + 500);
  }
  const json found = report();
  EXPECT_EQ(found["all"]["count"], 100);
  EXPECT_EQ(found["all"]["total_ns"], total);
  EXPECT_EQ(found["processes"].size(), 8U);
  EXPECT_EQ(found["processes"][0]["pid"], 1099);
  EXPECT_EQ(found["others"]["domains"], 92);
  EXPECT_EQ(found["others"]["count"], 92);
  EXPECT_THAT(text(), HasSubstr("100 GC pauses of 8 processes and 92 more domains"));
}

TEST_F(LatencyTest, DomainsBeyondTheLimitCountWhileNoProcessHasEnded) {
  make({.max_domains = 2});
  for (std::uint16_t domain = 0; domain < 5; ++domain) pause(1000, 10, domain);
  EXPECT_THAT(report(), HasMembers(R"({"all":{"count":5},"processes":[{"domains":[{},{}]}],
      "others":{"domains":3,"count":3}})"_json));
}

/// A hostile program has as many domains as there can be, whose pauses fill the histograms as much as they can.
TEST_F(LatencyTest, MemoryIsBoundedAndWhatIsMergedIsCounted) {
  constexpr std::size_t max_bytes = 1 << 20;
  make({.max_bytes = max_bytes});
  std::uint64_t pauses = 0, total = 0, at = 0;
  for (std::uint64_t ns = 100; ns < (1 << 17); ns += ns / 20 + 1) {
    for (std::uint16_t domain = 0; domain < 128; ++domain, ++pauses) {
      pause(at += 1'000'000, ns + domain, domain);
      total += ns + domain;
    }
  }
  const auto report = latency->report(world.registry);
  std::size_t bytes = 0, domains = 0;
  for (const auto& process : report.processes) {
    for (const auto& domain : process.domains) bytes += domain.figures.memory_bytes();
    domains += process.domains.size();
  }
  EXPECT_LE(bytes, max_bytes);
  EXPECT_GT(domains, 10u);
  EXPECT_EQ(domains + report.other_domains, 128u);
  EXPECT_EQ(report.all.wall.count(), pauses);
  EXPECT_EQ(report.all.wall.total(), total);
  EXPECT_GT(report.others.wall.count(), 0u);
}

TEST_F(LatencyTest, PartsAddUpForAnyStream) {
  std::mt19937 random{5};
  const auto pick = [&](std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random);
  };
  make({.interval_ns = 100'000});
  std::uint64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += pick(50);
    const auto domain = static_cast<std::uint16_t>(pick(3));
    const Thread thread =
        a_thread(4242, static_cast<std::int32_t>(4242 + pick(4)), static_cast<std::int32_t>(pick(4)) - 1);
    const auto cpu = static_cast<std::uint32_t>(pick(2));
    switch (pick(9)) {
      case 0:
        add(now, leaves(thread, static_cast<LeftState>(pick(8)), cpu));
        break;
      case 1:
        add(now, enters(thread, cpu));
        break;
      case 2:
        if (pick(200) == 0) lose(now, 10);
        break;
      default:
        feed(Events{world.slot}.add(start + now - (pick(30) == 0 ? pick(std::min<std::uint64_t>(now + 1, 100)) : 0),
                                    pick(2) == 0 ? EventKind::begin : EventKind::end,
                                    pick(2) == 0 ? phase_major : phase_minor, 0, domain));
    }
  }
  latency->summary({}, world.registry);
  const LatencyReport last = latency->report(world.registry);
  EXPECT_GT(last.all.wall.count(), 1000U);
  EXPECT_EQ(last.all.split.total(), last.all.wall.total());
  std::uint64_t count = last.others.wall.count();
  for (const auto& process : last.processes) {
    EXPECT_EQ(process.figures.split.total(), process.figures.wall.total());
    for (const auto& domain : process.domains) {
      EXPECT_EQ(domain.figures.split.total(), domain.figures.wall.total());
      count += domain.figures.wall.count();
    }
  }
  EXPECT_EQ(count, last.all.wall.count());
}

TEST_F(LatencyTest, ARingThatOverwroteItsPastGivesLowerBounds) {
  world.registry.process(world.process).words.before_attach = 1'234;
  pause(100, 10);
  RunSummary summary;
  summary.end_ns = start + 1'000;
  summary.whole_ring = true;
  latency->summary(summary, world.registry);
  EXPECT_EQ(report()["lower_bound"], true);
  EXPECT_EQ(report()["words_before"], 1'234);
  EXPECT_THAT(text(), HasSubstr("warning: lower bounds only: 1,234 words overwritten before the ring was read\n"));
  // Of a program that was found while it ran, figures are those since then.
  summary.whole_ring = false;
  latency->summary(summary, world.registry);
  EXPECT_EQ(report()["lower_bound"], false);
}

TEST_F(LatencyTest, WhereSchedulerEventsWereDroppedTimesAreUnknown) {
  const Thread mutator = test::a_thread(4242, 4242, 0);
  add(10, test::enters(mutator));
  pause(100, 50);
  feed(test::Events{0}.add_record(start + 200, EventKind::lost, Loss{5, start + 200, start + 400},
                                  static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream));
  pause(300, 50);
  EXPECT_THAT(report(), HasMembers(R"({"all":{"time_ns":{"on_cpu":50,"unknown":50}},"scheduler_dropped":5})"_json));
}

}  // namespace
}  // namespace rtev
