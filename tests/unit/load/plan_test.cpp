// SPDX-License-Identifier: MIT
#include "load/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace rtev::load {
namespace {

Plan make(const std::string& mix, std::uint32_t domain = 0, std::uint32_t domains = 1, std::uint64_t seed = 1) {
  return Plan::make({.seed = seed, .mix = *Mix::parse(mix), .domain = domain, .domains = domains});
}

std::vector<Step> steps(const Plan& plan) {
  return {plan.steps().begin(), plan.steps().end()};
}

bool is_phase(const Step& step, EventKind kind, std::string_view name) {
  return step.kind == kind && phase_name(Family::since_5_3, step.id) == name;
}

std::uint64_t count(const Plan& plan, EventKind kind, std::string_view phase) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(plan.steps(), [&](const Step& step) { return is_phase(step, kind, phase); }));
}

TEST(Plan, EqualOptionsGiveEqualPlans) {
  const Plan one = make("all", 1, 3, 7), other = make("all", 1, 3, 7);
  EXPECT_EQ(steps(one), steps(other));
  for (const Step& step : one.steps()) {
    if (step.kind == EventKind::user_custom) {
      EXPECT_TRUE(std::ranges::equal(one.payload(step), other.payload(step)));
    }
    if (step.kind == EventKind::alloc) {
      EXPECT_EQ(one.buckets(step), other.buckets(step));
    }
  }
  EXPECT_NE(steps(one), steps(make("all", 1, 3, 8)));
  EXPECT_NE(steps(one), steps(make("all", 0, 3, 7)));
}

TEST(Plan, AllHasEveryKind) {
  const EventCounts counts = make("all").counts(make("all").steps().size());
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (static_cast<EventKind>(kind) != EventKind::lifecycle) {
      EXPECT_GT(counts[kind], 0u) << kind;
    }
  }
}

TEST(Plan, WeightsAreSharesOfTheEvents) {
  const Plan plan = make("counters=3,alloc=1");
  const EventCounts counts = plan.counts(plan.steps().size());
  const std::uint64_t counters = counts[static_cast<std::size_t>(EventKind::counter)],
                      allocs = counts[static_cast<std::size_t>(EventKind::alloc)];
  EXPECT_EQ(counters + allocs, plan.steps().size());
  EXPECT_NEAR(static_cast<double>(counters), 3 * static_cast<double>(allocs), 3);
}

TEST(Plan, EveryBlockEndsItsSpans) {
  for (const char* mix : {"all", "gc", "user", "spans"}) {
    const Plan plan = make(mix, 1, 2);
    std::vector<Step> open;
    for (std::size_t i = 0; i < plan.steps().size(); ++i) {
      const Step& step = plan.steps()[i];
      if (step.kind == EventKind::begin || step.kind == EventKind::user_begin) open.push_back(step);
      if (step.kind == EventKind::end || step.kind == EventKind::user_end) {
        ASSERT_FALSE(open.empty()) << mix << ' ' << i;
        EXPECT_EQ(open.back().id, step.id) << mix << ' ' << i;
        open.pop_back();
      }
      if (plan.block_end(i + 1) == i + 1) {
        EXPECT_TRUE(open.empty()) << mix << ' ' << i;
      }
    }
    EXPECT_EQ(plan.block_end(plan.steps().size()), plan.steps().size());
    EXPECT_EQ(plan.block_end(0), plan.block_end(1));
  }
}

TEST(Plan, DomainsStopTheWorldTogetherAndLeadInTurn) {
  constexpr std::uint32_t domains = 3;
  std::vector<Plan> plans;
  for (std::uint32_t domain = 0; domain < domains; ++domain) plans.push_back(make("all", domain, domains));
  for (const Plan& plan : plans) {
    ASSERT_EQ(plan.steps().size(), plans[0].steps().size());
    EXPECT_GT(count(plan, EventKind::begin, "stw_leader"), 0u);
  }
  // While one domain leads, the others take part: their section has an additional first event.
  for (std::size_t i = 0; i + 1 < plans[0].steps().size(); ++i) {
    const auto leads = [&](const Plan& plan) { return is_phase(plan.steps()[i], EventKind::begin, "stw_leader"); };
    const auto follows = [&](const Plan& plan) {
      return is_phase(plan.steps()[i], EventKind::begin, "interrupt_remote") &&
             is_phase(plan.steps()[i + 1], EventKind::begin, "stw_handler");
    };
    const auto leaders = std::ranges::count_if(plans, leads);
    if (leaders == 0) continue;
    EXPECT_EQ(leaders, 1) << i;
    EXPECT_EQ(std::ranges::count_if(plans, follows), domains - 1) << i;
  }
}

TEST(Plan, SingleDomainAlwaysLeads) {
  const Plan plan = make("gc");
  EXPECT_GT(count(plan, EventKind::begin, "minor"), 0u);
  EXPECT_GT(count(plan, EventKind::begin, "major_slice"), 0u);
  EXPECT_GT(count(plan, EventKind::begin, "major_gc_phase_change"), 0u);
  EXPECT_EQ(count(plan, EventKind::begin, "stw_handler"), 0u);
}

TEST(Plan, FamiliesGetOnlyTheirIds) {
  for (const Family family : {Family::before_5_3, Family::since_5_3}) {
    const Plan plan = Plan::make({.mix = *Mix::parse("gc,counters"), .family = family, .domains = 2});
    for (const Step& step : plan.steps()) {
      const bool is_counter = step.kind == EventKind::counter;
      EXPECT_FALSE((is_counter ? counter_name(family, step.id) : phase_name(family, step.id)).empty()) << step.id;
    }
  }
}

TEST(Plan, PayloadsAreBounded) {
  const Plan plan = Plan::make({.mix = *Mix::parse("custom"), .max_payload = 64});
  std::uint32_t largest = 0;
  for (const Step& step : plan.steps()) {
    EXPECT_EQ(plan.payload(step).size(), step.size);
    largest = std::max(largest, step.size);
  }
  EXPECT_LE(largest, 64u);
  EXPECT_GT(largest, 48u);
}

TEST(Plan, CountsAnyNumberOfEvents) {
  const Plan plan = make("all");
  EventCounts expected{};
  for (std::uint64_t written = 0; written < 2 * plan.steps().size() + 10; ++written) {
    if (written % 97 == 0) {
      ASSERT_EQ(plan.counts(written), expected) << written;
    }
    ++expected[static_cast<std::size_t>(plan.steps()[written % plan.steps().size()].kind)];
  }
}

}  // namespace
}  // namespace rtev::load
