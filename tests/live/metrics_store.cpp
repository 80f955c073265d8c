// SPDX-License-Identifier: MIT
#include "live/metrics_store.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "live/http.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

const std::string prometheus_folder = std::string(RTEV_METRICS_STORES) + "/prometheus/bookworm/";
const std::string victoria_metrics = std::string(RTEV_METRICS_STORES) + "/victoriametrics/victoria-metrics";

}  // namespace

MetricsStore::MetricsStore() : port_(free_port()) {}

void MetricsStore::start(const Command& command, const std::string& ready_path) {
  process_.emplace(command);
  const auto answers = [&] {
    try {
      return http(port_, ready_path).status == 200;
    } catch (const std::system_error&) {
      return !process_->running();  // nothing to wait for
    }
  };
  if (poll_until(answers) && process_->running()) return;
  process_->signal(SIGKILL);
  throw std::runtime_error(command.argv.front() + " did not start: " + process_->wait().err);
}

Json MetricsStore::get(const std::string& path) const {
  const HttpResponse response = http(port_, path);
  const Json answer = Json::parse(response.body, nullptr, false);
  if (response.status == 200 && answer.is_object() && answer.value("status", "") == "success") return answer["data"];
  ADD_FAILURE() << path << ": " << response.status << ' ' << response.body;
  return Json::object();
}

Json MetricsStore::query(const std::string& expression) const {
  return get("/api/v1/query?query=" + percent_encoded(expression)).value("result", Json::array());
}

std::optional<double> MetricsStore::value(const std::string& expression) const {
  const Json results = query(expression);
  if (results.empty()) return std::nullopt;
  EXPECT_EQ(results.size(), 1U) << expression;
  return std::stod(results.at(0).at("value").at(1).get<std::string>());
}

void MetricsStore::wait_for(const std::string& expression, double expected) const {
  EXPECT_TRUE(poll_until([&] { return value(expression) == expected; }))
      << expression << " is " << value(expression).value_or(NAN) << ", not " << expected;
}

std::string Prometheus::promtool() {
  return prometheus_folder + "promtool";
}

Prometheus::Prometheus(const std::filesystem::path& folder, const std::string& configuration) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "prometheus.yml") << configuration;
  start({.argv = {prometheus_folder + "prometheus", "--config.file=" + (folder / "prometheus.yml").string(),
                  "--storage.tsdb.path=" + (folder / "data").string(),
                  "--web.listen-address=127.0.0.1:" + std::to_string(port()), "--log.level=warn"}},
        "/-/ready");
}

VictoriaMetrics::VictoriaMetrics(const std::filesystem::path& folder) {
  // The names that Prometheus gives metrics of OTLP; a query sees what was pushed before it.
  start({.argv = {victoria_metrics, "-storageDataPath=" + folder.string(),
                  "-httpListenAddr=127.0.0.1:" + std::to_string(port()), "-opentelemetry.usePrometheusNaming",
                  "-search.latencyOffset=0s", "-loggerLevel=WARN"}},
        "/health");
}

std::string metrics_stores_obstacle() {
  for (const std::string& program : {Prometheus::promtool(), victoria_metrics})
    if (!std::filesystem::exists(program)) return "there is no " + program + ": scripts/test unpacks it";
  return {};
}

}  // namespace rtev::test
