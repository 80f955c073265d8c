// SPDX-License-Identifier: MIT
// Metrics of `rtev-bpf agent` in a real Prometheus: the figures of a recording of the same time, rules, the dashboard.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <set>

#include "live/agent_fixture.hpp"

namespace rtev::test {
namespace {

/// Scrapes the agent every second, with the rules of contrib/.
std::string configuration(const Agent& agent) {
  return "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
         "rule_files: ['" +
         contrib_file("prometheus/rtev-bpf.rules.yml").string() +
         "']\n"
         "scrape_configs: [{job_name: rtev-bpf, static_configs: [{targets: ['127.0.0.1:" +
         std::to_string(agent.port()) + "']}]}]\n";
}

/// A group name that programs of other tests do not have.
std::string unique(const std::string& name) {
  return name + "-" + std::to_string(::getpid() % 100'000);
}

/// The sum of a member of the processes of this name; "a/b" is member b of member a. What is unknown does
/// not count, nor does it in metrics.
double sum_of(const Json& report, const std::string& comm, const std::string& member) {
  double sum = 0;
  for (const Json& process : report.at("processes")) {
    if (process.at("comm") != comm) continue;
    const Json& figure = process.at(Json::json_pointer("/" + member));
    if (!figure.is_null()) sum += figure.get<double>();
  }
  return sum;
}

using AgentPrometheusLive = AgentLive;

TEST_F(AgentPrometheusLive, RulesAreValidAndFire) {
  promtool({"check", "config", contrib_file("prometheus/prometheus.yml")});
  promtool({"check", "rules", contrib_file("prometheus/rtev-bpf.rules.yml")});
  promtool({"test", "rules", contrib_file("prometheus/rtev-bpf.rules.test.yml")});
}

TEST_F(AgentPrometheusLive, FiguresAreThoseOfARecordingOfTheSameTime) {
  const std::string churn = unique("churn"), calls = unique("calls"), busy = unique("busy"), crew = unique("crew"),
                    bad = unique("bad");
  const std::string path = dir / "same.fxt";
  Agent agent({"--group", "{exe}"});
  Tracer recorder({"-q"}, {.format = {"record", "-o", path}});
  const Prometheus prometheus(dir / "prometheus", configuration(agent));

  // A thousand programs that live for milliseconds, beside some that live longer.
  const Command hello = copied(with_events("hello"), churn);
  constexpr int shells = 4, runs = 250;
  std::vector<std::optional<Process>> churning(shells);
  Process paused(copied(with_events("long_pause", {"1.2"}), bad), "ready");
  Process calling(copied(with_events("collections", {"20", "20", "3", "2", "1"}), calls), "ready");
  Process working(copied(with_events("busy_alloc", {"200"}), busy), "ready");
  Process crowded(copied(with_events("domains", {"2", "5"}), crew), "ready");
  for (auto& shell : churning)
    shell.emplace(
        Command{.argv = {"/bin/sh", "-c",
                         "i=0; while [ $i -lt " + std::to_string(runs) + " ]; do \"$0\" || exit; i=$((i+1)); done",
                         hello.argv[0]},
                .env = hello.env});
  // An increase needs a time before.
  prometheus.wait_for("count_over_time(ocaml_processes{group=\"" + bad + "\"}[1m]) >= bool 2", 1);
  paused.go_until("paused");
  paused.signal(SIGKILL);
  EXPECT_EQ(paused.wait().status.signal(), SIGKILL);
  for (Process* program : {&calling, &working, &crowded}) EXPECT_EQ(run_through(*program).status.code(), 0);
  for (auto& shell : churning) EXPECT_EQ(run_through(*shell).status.code(), 0);

  const std::string exits =
      "sum(ocaml_process_exits_total{group=~\"" + churn + "|" + calls + "|" + busy + "|" + crew + "|" + bad + "\"})";
  prometheus.wait_for(exits, shells * runs + 4);
  prometheus.wait_for(
      "count(ALERTS{alertname=\"OcamlPauseOverASecond\",group=\"" + bad + "\",alertstate=\"firing\"}) > bool 0", 1);
  EXPECT_EQ(recorder.interrupt().status.code(), 0);

  // Short-lived processes are included.
  EXPECT_EQ(prometheus.value("ocaml_process_starts_total{group=\"" + churn + "\"}"), shells * runs);
  EXPECT_EQ(prometheus.value("sum(ocaml_processes{group=~\".*" + unique("") + "\"})"), 0);
  EXPECT_EQ(prometheus.value("sum(ocaml_domains{group=~\".*" + unique("") + "\"})"), 0);
  EXPECT_GE(prometheus.value("sum_over_time(up[1h])"), 3);
  EXPECT_EQ(prometheus.value("sum(ocaml_ring_lost_words_total{group=~\".*" + unique("") + "\"})"), 0);

  // The same figures as reports of a recording by another tracer.
  const Strings ours{"-n", unique("*")};
  const auto report_of = [&](const char* name) { return report({name, "-i", path, ours[0], ours[1]}); };
  const Json latency = report_of("latency"), stats = report_of("stats"), pauses = report_of("pauses");
  double all_pauses = 0;
  for (const std::string& group : {churn, calls, busy, crew, bad}) {
    const auto metric = [&](const std::string& name, const std::string& labels = "") {
      const std::string selector = "{group=\"" + group + "\"" + labels + "}";
      return prometheus.value("sum(" + name + selector + ")").value_or(-1);
    };
    const std::string comm = group.substr(0, 15);
    const double count = metric("ocaml_gc_pause_duration_seconds_count");
    all_pauses += count;
    EXPECT_EQ(count, sum_of(latency, comm, "count")) << group;
    EXPECT_NEAR(metric("ocaml_gc_pause_duration_seconds_sum"), sum_of(latency, comm, "total_ns") / 1e9, 1e-9) << group;
    EXPECT_NEAR(metric("ocaml_gc_time_seconds_total"), sum_of(latency, comm, "total_ns") / 1e9, 1e-9) << group;
    for (const auto& [name, member] : {std::pair{"ocaml_gc_minor_collections_total", "collections/minor"},
                                       {"ocaml_gc_major_slices_total", "collections/major_slices"},
                                       {"ocaml_gc_major_cycles_total", "collections/major_cycles"},
                                       {"ocaml_gc_compactions_total", "collections/compactions"}})
      EXPECT_EQ(metric(name), sum_of(stats, comm, member)) << group << ' ' << name;
    EXPECT_EQ(metric("ocaml_gc_minor_allocated_bytes_total"), 8 * sum_of(stats, comm, "words/minor")) << group;
    EXPECT_EQ(metric("ocaml_gc_promoted_bytes_total"), 8 * sum_of(stats, comm, "words/promoted")) << group;
    for (const char* function : {"minor", "major_slice", "major", "full_major", "compact", "stat", "set"})
      EXPECT_EQ(metric("ocaml_gc_explicit_total", std::string(",function=\"") + function + "\""),
                sum_of(stats, comm, std::string("explicit/") + function))
          << group << ' ' << function;
    EXPECT_EQ(metric("ocaml_process_exits_total"),
              std::ranges::count_if(stats.at("processes"),
                                    [&](const Json& p) { return p.at("comm") == comm && p.at("ended"); }))
        << group;
  }
  EXPECT_GT(all_pauses, 100);
  EXPECT_EQ(pauses.at("counts").at("pauses"), all_pauses);

  // Nothing that is to grow has ever fallen.
  std::set<std::string> growing;
  for (const auto& [series, value] : agent.scrape().values)
    if (std::regex_search(series.first, std::regex("_(total|bucket|sum|count)$"))) growing.insert(series.first);
  EXPECT_GT(growing.size(), 30U);
  for (const std::string& name : growing) EXPECT_EQ(prometheus.value("sum(resets(" + name + "[1h]))"), 0) << name;

  promtool({"check", "metrics"}, http(agent.port(), "/metrics").body);

  for (const Json& group : prometheus.get("/api/v1/rules").at("groups")) {
    for (const Json& rule : group.at("rules")) {
      EXPECT_EQ(rule.at("health"), "ok") << rule;
      EXPECT_FALSE(rule.contains("lastError")) << rule;
    }
  }

  // Each panel of the dashboard has something to show.
  const Json dashboard = Json::parse(read_file(contrib_file("grafana/dashboard.json")));
  std::size_t queries = 0;
  for (const Json& panel : dashboard.at("panels")) {
    for (const Json& target : panel.value("targets", Json::array())) {
      std::string expression = target.at("expr");
      for (const auto& [variable, value] :
           {std::pair{"$__rate_interval", "1m"}, {"$instance", ".*"}, {"$group", ".*"}, {"${datasource}", ""}})
        for (std::size_t at; (at = expression.find(variable)) != std::string::npos;)
          expression.replace(at, std::string_view(variable).size(), value);
      EXPECT_FALSE(expression.contains('$')) << expression;
      const Json results = prometheus.query(expression);
      ++queries;
      EXPECT_TRUE(!results.empty() || expression.ends_with("> 0")) << panel.at("title") << ": " << expression;
    }
  }
  EXPECT_GT(queries, 40U);
}

}  // namespace
}  // namespace rtev::test
