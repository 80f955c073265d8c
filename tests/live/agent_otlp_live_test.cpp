// SPDX-License-Identifier: MIT
// What `rtev-bpf agent` pushes: decoded by the published definitions, and queried in a real server.
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "live/agent_fixture.hpp"
#include "support/otlp_check.hpp"
#include "support/pprof_check.hpp"

namespace rtev::test {
namespace {

using AgentOtlpLive = AgentLive;

/// "ocaml.gc.pause.duration" in "s": ocaml_gc_pause_duration_seconds; of a counter _total.
std::string prometheus_name(const std::string& name, const OtlpMetric& metric) {
  std::string plain = name;
  std::ranges::replace(plain, '.', '_');
  if (metric.unit == "s") plain += "_seconds";
  if (metric.unit == "By") plain += "_bytes";
  return metric.kind == OtlpMetric::Kind::counter ? plain + "_total" : plain;
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

/// The first metrics that were made after this time.
OtlpMetricsContent pushed_after(HttpReceiver& collector, std::uint64_t since_ns) {
  for (std::size_t next = 0;; ++next) {
    const HttpReceiver::Request push = collector.wait_for(next);
    if (!push.path.ends_with("/v1/metrics")) continue;
    EXPECT_EQ(push.headers.at("content-type"), "application/x-protobuf");
    OtlpMetricsContent content = read_otlp_metrics(gunzip(push.body));
    if (content.metrics.at("rtev.bpf.groups").points.begin()->second.time_ns > since_ns) return content;
  }
}

TEST_F(AgentOtlpLive, PushesWhatItServes) {
  HttpReceiver collector;
  Agent agent({"--group", "{exe}", "-n", "pushed", "--otlp",
               "http://localhost:" + std::to_string(collector.port()) + "/base", "--otlp-interval", "1s",
               "--otlp-header", "Authorization=Bearer secret", "--otlp-header", "X-Tenant=shop", "--pause-spans",
               "1ns"});
  run_to_end(copied(with_events("collections", {"5", "5", "2", "2"}), "pushed"));
  const Exposition before = agent.scrape_until_ended("pushed", 1);
  const OtlpMetricsContent content = pushed_after(collector, now_ns());
  EXPECT_EQ(collector.wait_for(0).headers.at("authorization"), "Bearer secret");
  EXPECT_EQ(collector.wait_for(0).headers.at("x-tenant"), "shop");
  const Exposition after = agent.scrape();
  EXPECT_EQ(content.resource.at("service.name"), "rtev-bpf");
  EXPECT_FALSE(content.resource.at("service.instance.id").empty());
  std::size_t compared = 0;
  const auto expect = [&](const std::string& name, const Labels& labels, double value) {
    const auto first = before.values.find({name, labels}), last = after.values.find({name, labels});
    ASSERT_NE(last, after.values.end()) << name;
    EXPECT_LE(value, last->second) << name;
    if (first == before.values.end()) return;
    EXPECT_GE(value, first->second) << name;
    ++compared;
  };
  for (const auto& [name, metric] : content.metrics) {
    const std::string served = prometheus_name(name, metric);
    for (const auto& [attributes, point] : metric.points) {
      EXPECT_LE(point.start_ns, point.time_ns);
      // The agent itself goes on.
      if (metric.kind == OtlpMetric::Kind::histogram) {
        expect(served + "_count", attributes, static_cast<double>(point.count));
        expect(served + "_sum", attributes, point.sum);
      } else if (metric.kind == OtlpMetric::Kind::counter) {
        expect(served, attributes, point.value);
      } else if (attributes.contains("group") && attributes.at("group") == "pushed") {
        EXPECT_EQ(point.value, after.value(served, attributes)) << served;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 70U);
  // Nothing but the figures of the exporter is served and not pushed.
  for (const auto& [series, value] : after.values) {
    const std::string& name = series.first;
    if (name.starts_with("rtev_bpf_otlp") || name.ends_with("_bucket")) continue;
    EXPECT_TRUE(std::ranges::any_of(content.metrics, [&](const auto& metric) {
      return name.starts_with(prometheus_name(metric.first, metric.second));
    })) << name;
  }

  // Long pauses are spans of the program, with their cause.
  for (std::size_t index = 0;; ++index) {
    const HttpReceiver::Request request = collector.wait_for(index);
    if (request.path != "/base/v1/traces") continue;
    const auto spans = read_otlp_spans(gunzip(request.body));
    const auto ours =
        std::ranges::find_if(spans, [](const OtlpSpan& s) { return s.attributes.at("group") == "pushed"; });
    if (ours == spans.end()) continue;
    EXPECT_EQ(ours->resource.at("service.name"), "pushed");
    EXPECT_FALSE(ours->attributes.at("ocaml.gc.pause.cause").empty());
    EXPECT_LT(ours->start_ns, ours->end_ns);
    break;
  }
  EXPECT_GE(agent.scrape().value("rtev_bpf_otlp_requests_total", {{"result", "ok"}}), 2);
}

TEST_F(AgentOtlpLive, SaysWhenTheCollectorDoesNotAnswer) {
  // No program listens on this port.
  std::uint16_t port = 0;
  {
    port = HttpReceiver().port();
  }
  Agent agent({"--otlp", "http://127.0.0.1:" + std::to_string(port), "--otlp-interval", "1s"});
  agent.scrape_until([](const Exposition& now) {
    return now.has("rtev_bpf_otlp_requests_total", {{"result", "retried"}}) &&
           now.value("rtev_bpf_otlp_requests_total", {{"result", "retried"}}) >= 2;
  });
  ::kill(agent.pid(), SIGTERM);
  const std::string said = agent.process().wait().err;
  const std::string warning = "warning: cannot push to http://127.0.0.1:" + std::to_string(port) + "/v1/metrics";
  EXPECT_THAT(said, HasSubstr(warning));
  EXPECT_EQ(said.find(warning), said.rfind(warning)) << "once: " << said;
}

TEST_F(AgentOtlpLive, FiguresAreThoseOfARecordingOfTheSameTime) {
  HttpReceiver collector;
  const std::string path = dir / "same.fxt";
  Agent agent({"--group", "{exe}", "-n", "otlp-busy", "--otlp", "http://127.0.0.1:" + std::to_string(collector.port()),
               "--otlp-interval", "1s"});
  Tracer recorder({"-q", "-n", "otlp-busy"}, {.format = {"record", "-o", path}});
  run_to_end(copied(with_events("busy_alloc", {"400"}), "otlp-busy"));
  agent.scrape_until_ended("otlp-busy", 1);
  const OtlpMetricsContent content = pushed_after(collector, now_ns());
  EXPECT_EQ(recorder.interrupt().status.code(), 0);
  const Json latency = report({"latency", "-i", path}).at("processes").at(0),
             stats = report({"stats", "-i", path}).at("processes").at(0);
  const OtlpAttributes group{{"group", "otlp-busy"}};
  EXPECT_EQ(content.metrics.at("ocaml.gc.minor.collections").points.at(group).value,
            stats.at("collections").at("minor"));
  EXPECT_EQ(content.metrics.at("ocaml.gc.promoted").points.at(group).value,
            8 * stats.at("words").at("promoted").get<double>());
  OtlpPoint pauses;
  for (const auto& [attributes, point] : content.metrics.at("ocaml.gc.pause.duration").points) {
    pauses.count += point.count;
    pauses.sum += point.sum;
    pauses.scale = point.scale;
    for (const auto& [index, count] : point.buckets) pauses.buckets[index] += count;
  }
  EXPECT_EQ(pauses.count, latency.at("count"));
  EXPECT_NEAR(pauses.sum, latency.at("total_ns").get<double>() / 1e9, 1e-9);
  // Buckets are 9 % wide, those of `latency` 1 %.
  for (const auto& [quantile, percentile] : {std::pair{0.5, "50"}, {0.9, "90"}, {0.99, "99"}}) {
    const Json& length = latency.at("percentiles_ns").at(percentile);
    if (length.is_null()) continue;  // there were too few pauses
    const double expected = length.get<double>() / 1e9;
    EXPECT_GT(pauses.quantile(quantile), expected / 1.02) << quantile;
    EXPECT_LT(pauses.quantile(quantile), expected * 1.11) << quantile;
  }
}

TEST_F(AgentOtlpLive, AServerThatTakesThemAnswersPromQl) {
  const VictoriaMetrics server(dir / "metrics");
  const std::string path = dir / "same.fxt";
  Agent agent({"--group", "{exe}", "-n", "otlp-busy", "--otlp", server.otlp_url(), "--otlp-interval", "1s"});
  Tracer recorder({"-q", "-n", "otlp-busy"}, {.format = {"record", "-o", path}});
  run_to_end(copied(with_events("busy_alloc", {"400"}), "otlp-busy"));
  server.wait_for("ocaml_process_exits_total{group=\"otlp-busy\",reason=\"exit\"}", 1);
  EXPECT_EQ(recorder.interrupt().status.code(), 0);

  const Json latency = report({"latency", "-i", path}).at("processes").at(0),
             stats = report({"stats", "-i", path}).at("processes").at(0);
  const auto sum = [&](const std::string& name) {
    return server.value("sum(" + name + "{group=\"otlp-busy\"})").value_or(-1);
  };
  EXPECT_EQ(sum("ocaml_gc_pause_duration_seconds_count"), latency.at("count"));
  EXPECT_NEAR(sum("ocaml_gc_pause_duration_seconds_sum"), latency.at("total_ns").get<double>() / 1e9, 1e-9);
  EXPECT_EQ(sum("ocaml_gc_minor_collections_total"), stats.at("collections").at("minor"));
  EXPECT_EQ(sum("ocaml_gc_promoted_bytes_total"), 8 * stats.at("words").at("promoted").get<double>());
  EXPECT_EQ(sum("ocaml_processes"), 0);
  EXPECT_EQ(sum("ocaml_ring_lost_words_total"), 0);
  // Buckets are 9 % wide, and the server has 18 in each power of ten.
  for (const auto& [quantile, percentile] : {std::pair{"0.5", "50"}, {"0.9", "90"}, {"0.99", "99"}}) {
    const Json& length = latency.at("percentiles_ns").at(percentile);
    if (length.is_null()) continue;  // there were too few pauses
    const double expected = length.get<double>() / 1e9;
    const double found = server
                             .value(std::string("histogram_quantile(") + quantile +
                                    ", sum by (vmrange) (ocaml_gc_pause_duration_seconds_bucket{group=\"otlp-busy\"}))")
                             .value_or(-1);
    EXPECT_GT(found, expected / 1.15) << quantile;
    EXPECT_LT(found, expected * 1.15) << quantile;
  }
}

}  // namespace
}  // namespace rtev::test
