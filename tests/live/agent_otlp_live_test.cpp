// SPDX-License-Identifier: MIT
// What `rtev-bpf agent` pushes: decoded by the published definitions, and taken by a real Prometheus.
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

TEST_F(AgentOtlpLive, DISABLED_PushesWhatItServes) {
  HttpReceiver collector;
  Agent agent({"--group", "{exe}", "-n", "pushed", "--otlp",
               "http://localhost:" + std::to_string(collector.port()) + "/base", "--otlp-interval", "1s",
               "--otlp-header", "Authorization=Bearer secret", "--pause-spans", "1ns"});
  run_to_end(copied(with_events("collections", {"5", "5", "2", "2"}), "pushed"));
  const Exposition before = agent.scrape_until_ended("pushed", 1);
  const auto since =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  OtlpMetricsContent content;
  const auto is_newer = [&] { return content.metrics.at("ocaml.processes").points.begin()->second.time_ns > since; };
  for (std::size_t next = 0; content.metrics.empty() || !is_newer(); ++next) {
    const HttpReceiver::Request push = collector.wait_for(next);
    if (push.path != "/base/v1/metrics") continue;
    EXPECT_EQ(push.headers.at("content-type"), "application/x-protobuf");
    EXPECT_EQ(push.headers.at("authorization"), "Bearer secret");
    content = read_otlp_metrics(gunzip(push.body));
    if (!content.metrics.contains("ocaml.processes")) content = {};  // there was none yet
  }
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

TEST_F(AgentOtlpLive, DISABLED_APrometheusTakesIt) {
  const Prometheus prometheus("trixie", dir / "prometheus", "{}",
                              {"--enable-feature=otlp-write-receiver,native-histograms"});
  const std::string path = dir / "same.fxt";
  Agent agent({"--group", "{exe}", "--otlp", "http://127.0.0.1:" + std::to_string(prometheus.port()) + "/api/v1/otlp",
               "--otlp-interval", "1s"});
  Tracer recorder({"-q"}, {.format = {"record", "-o", path}});
  run_to_end(copied(with_events("busy_alloc", {"400"}), "otlp-busy"));
  const std::string group = "{job=\"rtev-bpf\",group=\"otlp-busy\"}";
  prometheus.wait_for("sum(ocaml_process_exits_total" + group + ")", 1);
  EXPECT_EQ(recorder.interrupt().status.code(), 0);
  const auto entry_of = [](const Json& report) {
    const auto& all = report.at("processes");
    const auto found = std::ranges::find_if(all, [](const Json& process) { return process.at("comm") == "otlp-busy"; });
    return found != all.end() ? *found : Json::object();
  };
  const Json latency = entry_of(report({"latency", "-i", path, "--full"})),
             stats = entry_of(report({"stats", "-i", path, "--full"}));
  EXPECT_EQ(prometheus.value("ocaml_gc_minor_collections_total" + group),
            stats.at("collections").at("minor").get<double>());
  EXPECT_EQ(prometheus.value("ocaml_gc_promoted_bytes_total" + group),
            stats.at("words").at("promoted").get<double>() * 8);
  const std::string pauses = "sum(ocaml_gc_pause_duration_seconds" + group + ")";
  EXPECT_EQ(prometheus.value("histogram_count(" + pauses + ")"), latency.at("count").get<double>());
  EXPECT_NEAR(prometheus.value("histogram_sum(" + pauses + ")").value_or(0), latency.at("total_ns").get<double>() / 1e9,
              1e-6);
  EXPECT_FALSE(prometheus.query("ocaml_gc_pause_duration_seconds" + group)
                   .at(0)
                   .at("metric")
                   .at("instance")
                   .get<std::string>()
                   .empty());
  // A quantile is within its bucket, each of which is 9 % wide; `latency` has buckets of its own.
  for (const auto& [quantile, percentile] : {std::pair{"0.5", "50"}, {"0.9", "90"}, {"0.99", "99"}}) {
    const double expected = latency.at("percentiles_ns").at(percentile).get<double>() / 1e9;
    const double got =
        prometheus.value(std::string("histogram_quantile(") + quantile + ", " + pauses + ")").value_or(0);
    EXPECT_GT(got, expected / 1.12) << quantile;
    EXPECT_LT(got, expected * 1.12) << quantile;
  }
}

}  // namespace
}  // namespace rtev::test
