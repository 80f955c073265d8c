// SPDX-License-Identifier: MIT
#include "metrics/carried_metrics.hpp"

#include "unit/metrics/metrics_fixture.hpp"

namespace rtev::test {
namespace {

constexpr MetricFamily counter{.name = "things", .unit = "", .help = "x", .type = MetricType::counter},
    gauge{.name = "level", .unit = "", .help = "x", .type = MetricType::gauge},
    times{.name = "times", .unit = "seconds", .help = "x", .type = MetricType::histogram};

DurationHistogram histogram_of(std::initializer_list<std::uint64_t> durations) {
  DurationHistogram histogram;
  for (const std::uint64_t ns : durations) histogram.record(ns);
  return histogram;
}

/// Metrics of one group: a counter, a gauge, a histogram.
void visit(MetricVisitor& visitor, std::string_view group, std::int64_t amount,
           std::initializer_list<std::uint64_t> durations) {
  const MetricLabel labels[]{{"group", group}};
  visitor.family(counter);
  visitor.value(labels, amount);
  visitor.family(gauge);
  visitor.value(labels, amount);
  visitor.family(times);
  visitor.histogram(labels, histogram_of(durations));
}

MetricSnapshot snapshot_of(std::string_view group, std::int64_t amount,
                           std::initializer_list<std::uint64_t> durations) {
  MetricSnapshot snapshot;
  visit(snapshot, group, amount, durations);
  return snapshot;
}

TEST(CarriedMetrics, CountersGoOnWhereTheyWere) {
  CarriedMetrics carried{.before = snapshot_of("a", 100, {1'000, 2'000'000}), .own = snapshot_of("a", 7, {1'000})};
  MetricCollector all;
  CarryingVisitor visitor(all, carried);
  visit(visitor, "a", 10, {1'000, 3'000'000});
  visitor.end();
  EXPECT_EQ(all.values["things{group=a}"], 103);
  EXPECT_EQ(all.values["level{group=a}"], 10);
  const DurationHistogram expected = histogram_of({1'000, 2'000'000, 3'000'000}),
                          &found = all.histograms["times{group=a}"];
  EXPECT_EQ(found.count(), expected.count());
  EXPECT_EQ(found.sum_ns(), expected.sum_ns());
  EXPECT_EQ(found.classic(), expected.classic());
  EXPECT_EQ(found.exponential(), expected.exponential());
}

TEST(CarriedMetrics, WhatOnlyOneOfThemHasStays) {
  CarriedMetrics carried{.before = snapshot_of("gone", 5, {9}), .own = snapshot_of("both", 1, {})};
  MetricCollector all;
  CarryingVisitor visitor(all, carried);
  visit(visitor, "new", 2, {3});
  visitor.end();
  EXPECT_EQ(all.values["things{group=gone}"], 5);
  EXPECT_EQ(all.values["things{group=new}"], 2);
  EXPECT_EQ(all.values.count("level{group=gone}"), 0u);
  EXPECT_EQ(all.histograms["times{group=gone}"].count(), 1u);
  EXPECT_EQ(all.histograms["times{group=new}"].sum_ns(), 3u);
}

TEST(CarriedMetrics, AGroupThatWasForgottenCountsFromThenOn) {
  CarriedMetrics carried{.before = snapshot_of("a", 100, {1}), .own = snapshot_of("a", 50, {1, 2})};
  for (const std::int64_t amount : {3, 60}) {
    MetricCollector all;
    CarryingVisitor visitor(all, carried);
    visit(visitor, "a", amount, {5});
    visitor.end();
    EXPECT_EQ(all.values["things{group=a}"], 100 + amount);
    EXPECT_EQ(all.histograms["times{group=a}"].count(), 2u);
  }
}

TEST(CarriedMetrics, AnyNumberOfReplacementsAddUp) {
  MetricSnapshot total = snapshot_of("a", 1, {1});
  for (int i = 0; i < 3; ++i) {
    CarriedMetrics carried{.before = std::move(total), .own = snapshot_of("a", 5, {1})};
    total = {};
    CarryingVisitor visitor(total, carried);
    visit(visitor, "a", 15, {1, 2, 3});
    visitor.end();
  }
  MetricCollector all;
  CarriedMetrics carried{.before = std::move(total), .own = {}};
  CarryingVisitor visitor(all, carried);
  visit(visitor, "a", 0, {});
  visitor.end();
  EXPECT_EQ(all.values["things{group=a}"], 31);
  EXPECT_EQ(all.histograms["times{group=a}"].count(), 7u);
}

TEST(CarriedMetrics, TextIsReadBack) {
  const MetricSnapshot snapshot = snapshot_of("q\"uote\\ and blank é", INT64_MAX, {0, 5, 1'000'000'000, UINT64_MAX});
  const auto read = MetricSnapshot::parse(snapshot.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), snapshot.text());
  EXPECT_EQ(read->groups(), snapshot.groups());
}

TEST(CarriedMetrics, HostileTextIsRefusedOrLeftOut) {
  EXPECT_FALSE(MetricSnapshot::parse(""));
  EXPECT_FALSE(MetricSnapshot::parse("other\n"));
  EXPECT_FALSE(MetricSnapshot::parse(std::string(MetricSnapshot::max_bytes + 1, 'x')));
  const std::string first = "rtev-bpf-metrics\n";
  EXPECT_FALSE(MetricSnapshot::parse(first + "family\t\x1b[2J\n"));
  const std::string lines[] = {
      "count\t1\n",
      "family\tf\ncount\t-1\n",
      "family\tf\ncount\t99999999999999999999\n",
      "family\tf\ncount\tx\tgroup\ta\n",
      "family\tf\ntimes\t18/3/-185/241 1 1 99:1;\n",
      "family\tf\ntimes\t18/3/-185/241 1 1 0:1;0:x",
      "family\tf\ntimes\t1/2/3/4 1 1;\n",
      "family\tf\ncount\t1\t\tx\n",
  };
  for (const std::string& line : lines) {
    const auto read = MetricSnapshot::parse(first + line);
    ASSERT_TRUE(read) << line;
    EXPECT_TRUE(read->series("f") == nullptr || read->series("f")->empty()) << line;
  }
}

TEST(CarriedMetrics, SumsDoNotOverflow) {
  CarriedMetrics carried{.before = snapshot_of("a", INT64_MAX, {UINT64_MAX}), .own = {}};
  MetricCollector all;
  CarryingVisitor visitor(all, carried);
  visit(visitor, "a", 5, {7});
  visitor.end();
  EXPECT_EQ(all.values["things{group=a}"], INT64_MAX);
  EXPECT_EQ(all.histograms["times{group=a}"].sum_ns(), UINT64_MAX);
}

TEST(CarriedMetrics, GroupsAreBounded) {
  MetricSnapshot before;
  before.family(counter);
  for (const char* group : {"a", "b", "c", "d"}) {
    const MetricLabel labels[]{{"group", group}};
    before.value(labels, 1);
  }
  CarriedMetrics carried{.before = std::move(before), .own = snapshot_of("d", 1, {})};
  carried.limit_groups(3);
  EXPECT_EQ(carried.before.groups(), (std::set<std::string>{"a", "b", "d"}));
}

}  // namespace
}  // namespace rtev::test
