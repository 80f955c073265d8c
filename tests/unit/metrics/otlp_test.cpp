// SPDX-License-Identifier: MIT
#include "metrics/otlp.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "stream/run_clock.hpp"
#include "support/otlp_check.hpp"
#include "unit/metrics/metrics_fixture.hpp"

namespace rtev::test {
namespace {

class OtlpTest : public MetricsTest {
 protected:
  OtlpMetricsContent pushed(std::uint64_t now_ns) {
    OtlpMetrics request(metrics->run(), now_ns);
    metrics->visit(request);
    return read_otlp_metrics(request.request());
  }
};

TEST_F(OtlpTest, SaysWhoSendsIt) {
  EXPECT_EQ(pushed(1).resource, (OtlpAttributes{{"service.name", "rtev-bpf"},
                                                {"service.version", "1.2"},
                                                {"service.instance.id", "box"},
                                                {"host.name", "box"}}));
}

TEST_F(OtlpTest, TimesFollowAClockThatWasSet) {
  RunHeader run{.start_ns = monotonic_ns(), .start_realtime_ns = 1};
  const std::uint64_t before = clock_ns(CLOCK_REALTIME);
  follow_clock(run);
  EXPECT_GE(run.start_realtime_ns + (monotonic_ns() - run.start_ns), before);
  RunHeader unknown{.start_ns = 1};
  follow_clock(unknown);
  EXPECT_EQ(unknown.start_realtime_ns, 0U);

  process(1, ProcessAction::found);
  OtlpMetrics set_back(metrics->run(), 1001, UINT64_MAX);
  metrics->visit(set_back);
  for (const auto& [name, metric] : read_otlp_metrics(set_back.request()).metrics) {
    for (const auto& [attributes, point] : metric.points) EXPECT_LE(point.start_ns, point.time_ns) << name;
  }
}

TEST_F(OtlpTest, HasAllThatPrometheusGets) {
  make({.user = {.events = {"*"}, .spans = {"*"}}});
  world.user_names = {{1, "request"}};
  process(1, ProcessAction::found);
  play("1000 >minor 1500 <minor 2000 >major_slice 9000000 <major_slice 9000001 [1 9000101 ]1");
  count(9'000'200, "minor_allocated", 1234);
  count(9'000'300, "major_heap_pool_words", 7);
  const MetricCollector expected = collected();
  const OtlpMetricsContent got = pushed(1001);
  std::size_t points = 0;
  for (const auto& [name, metric] : got.metrics) {
    std::string plain = name;
    std::ranges::replace(plain, '.', '_');
    const auto family = expected.families.find(plain);
    ASSERT_NE(family, expected.families.end()) << name;
    EXPECT_EQ(metric.unit, family->second.unit == "seconds" ? "s" : family->second.unit == "bytes" ? "By" : "");
    EXPECT_EQ(static_cast<int>(metric.kind), family->second.type == MetricType::gauge     ? 0
                                             : family->second.type == MetricType::counter ? 1
                                                                                          : 2);
    for (const auto& [attributes, point] : metric.points) {
      ++points;
      EXPECT_EQ(point.time_ns, 1'000'001'001U);
      EXPECT_EQ(point.start_ns, metric.kind == OtlpMetric::Kind::gauge ? 0 : 1'000'000'001U);
      // Labels of all metrics but "group" and one more.
      std::string series = plain;
      if (attributes.contains("group")) series += "{group=" + attributes.at("group");
      for (const auto& [key, value] : attributes)
        if (key != "group") series += (series == plain ? "{" : ",") + key + "=" + value;
      if (series != plain) series += "}";
      if (metric.kind == OtlpMetric::Kind::histogram) {
        ASSERT_TRUE(expected.histograms.contains(series)) << series;
        const DurationHistogram& histogram = expected.histograms.at(series);
        EXPECT_EQ(point.count, histogram.count());
        EXPECT_DOUBLE_EQ(point.sum, static_cast<double>(histogram.sum_ns()) / 1e9);
        EXPECT_EQ(point.scale, DurationHistogram::scale);
        for (std::size_t i = 0; i < DurationHistogram::bucket_count; ++i) {
          const auto at = point.buckets.find(DurationHistogram::first_index + static_cast<std::int32_t>(i));
          EXPECT_EQ(at != point.buckets.end() ? at->second : 0, histogram.exponential()[i]) << series << i;
        }
      } else {
        ASSERT_TRUE(expected.values.contains(series)) << series;
        const auto amount = static_cast<double>(expected.values.at(series));
        EXPECT_DOUBLE_EQ(point.value, family->second.is_time() ? amount / 1e9 : amount) << series;
      }
    }
  }
  EXPECT_EQ(points, expected.values.size() + expected.histograms.size());
}

TEST_F(OtlpTest, QuantilesAreWithinTheWidthOfABucket) {
  std::uint64_t at = 1000;
  for (std::uint64_t ns = 1'000; ns <= 1'000'000; ns += 1'000, at += 2'000'000)
    play(fmt::format("{} >major {} <major", at, at + ns));
  const auto content = pushed(at);
  const OtlpPoint& point =
      content.metrics.at("ocaml.gc.pause.duration").points.at({{"group", "server"}, {"kind", "major"}});
  for (const double which : {0.5, 0.9, 0.99}) {
    const double exact = which * 1e-3;
    EXPECT_GE(point.quantile(which), exact * 0.999);
    EXPECT_LE(point.quantile(which), exact * 1.1);
  }
}

TEST_F(OtlpTest, HostileNamesStayText) {
  for (const std::string& hostile : hostile_strings()) {
    ProcessInfo info = World::default_info();
    info.pid = 77;
    info.exe = hostile;
    process(1, ProcessAction::exec, world.registry.add_process(std::move(info)));
  }
  EXPECT_GT(pushed(5).metrics.at("ocaml.processes").points.size(), 5U);  // the library refuses what is not UTF-8
}

TEST(OtlpSpans, APauseIsASpanOfItsService) {
  const RunHeader run{.version = "1.2", .host = "box", .start_ns = 100, .start_realtime_ns = 1'000'100};
  const PauseSpan named{.begin_ns = 200,
                        .end_ns = 900,
                        .group = "web",
                        .service = "shop",
                        .version = "2.1",
                        .program = "shop.exe",
                        .pid = 42,
                        .domain = 3,
                        .kind = "major",
                        .verdict = "no CPU"};
  PauseSpan nameless = named;
  nameless.service.clear();
  nameless.version.clear();
  const std::vector<PauseSpan> pauses{named, nameless};
  const auto spans = read_otlp_spans(otlp_spans(pauses, run));
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].resource,
            (OtlpAttributes{{"service.name", "shop"}, {"service.version", "2.1"}, {"host.name", "box"}}));
  EXPECT_EQ(spans[0].attributes, (OtlpAttributes{{"ocaml.gc.pause.kind", "major"},
                                                 {"ocaml.gc.pause.cause", "no CPU"},
                                                 {"ocaml.domain", "3"},
                                                 {"group", "web"},
                                                 {"process.pid", "42"},
                                                 {"process.executable.name", "shop.exe"}}));
  EXPECT_EQ(spans[0].name, "GC pause: major");
  EXPECT_EQ(spans[0].start_ns, 1'000'200U);
  EXPECT_EQ(spans[0].end_ns, 1'000'900U);
  EXPECT_EQ(spans[1].resource.at("service.name"), "web");
  EXPECT_NE(spans[0].trace_id, spans[1].trace_id);
  EXPECT_NE(spans[0].span_id, spans[1].span_id);
}

}  // namespace
}  // namespace rtev::test
