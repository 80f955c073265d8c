// SPDX-License-Identifier: MIT
#include "live/agent_fixture.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "support/poll_until.hpp"

namespace rtev::test {

fs::path contrib_file(const std::string& name) {
  return fs::path(RTEV_CONTRIB) / name;
}

Exposition Exposition::parse(const std::string& text) {
  Exposition exposition;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::size_t at = line.find_first_of("{ ");
    const std::string name = line.substr(0, at);
    Labels labels;
    while (at < line.size() && (line[at] == '{' || line[at] == ',')) {
      const std::size_t equals = line.find("=\"", at);
      const std::string key = line.substr(at + 1, equals - at - 1);
      std::string& value = labels[key];
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\') ++at;
        value += line[at];
      }
      ++at;
    }
    if (at < line.size() && line[at] == '}') ++at;
    char* end = nullptr;
    const double value = std::strtod(line.c_str() + at, &end);
    if (end == line.c_str() + at || *end != '\0' ||
        !exposition.values.emplace(std::pair{name, std::move(labels)}, value).second)
      ADD_FAILURE() << "bad or twice: " << line;
  }
  return exposition;
}

double Exposition::value(const std::string& name, const Labels& labels) const {
  const auto found = values.find({name, labels});
  if (found != values.end()) return found->second;
  ADD_FAILURE() << "no " << name << ' ' << ::testing::PrintToString(labels);
  return NAN;
}

Agent::Agent(Strings arguments, std::map<std::string, std::string> env) {
  arguments.insert(arguments.begin(), {tool(), "agent", "--listen", "127.0.0.1:0"});
  start_ready(process_, {.argv = std::move(arguments), .env = std::move(env)});
  const std::string line = process_->error_with("Metrics: http://127.0.0.1:");
  port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
}

Exposition Agent::scrape() const {
  const HttpResponse response = http(port_, "/metrics");
  EXPECT_EQ(response.status, 200);
  return Exposition::parse(response.body);
}

Exposition Agent::scrape_until(const std::function<bool(const Exposition&)>& done) const {
  Exposition last;
  EXPECT_TRUE(poll_until([&] {
    last = scrape();
    return done(last);
  })) << ::testing::PrintToString(last.values);
  return last;
}

Exposition Agent::scrape_until_ended(const std::string& group, double count) const {
  return scrape_until([&](const Exposition& now) {
    double ended = 0;
    for (const auto& [series, value] : now.values)
      if (series.first == "ocaml_process_exits_total" && series.second.at("group") == group) ended += value;
    return ended >= count;
  });
}

int Agent::status(const std::string& path) const {
  try {
    return http(port_, path).status;
  } catch (const std::system_error&) {
    return 0;
  }
}

pid_t Agent::network_worker() const {
  for (const pid_t pid : children_of(process_->pid()))
    if (comm_of(pid) == "rtev-network")
      if (const auto workers = children_of(pid); !workers.empty()) return workers.front();
  return 0;
}

std::string comm_of(pid_t pid) {
  std::string comm;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> std::ws, comm);
  return comm;
}

bool has_ended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.substr(name_end + 2, 1) == "Z";
}

void AgentLive::SetUp() {
  AnalysisLive::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  const std::string obstacle = metrics_stores_obstacle();
  if (obstacle.empty()) return;
  if (std::getenv("CI") != nullptr) FAIL() << obstacle;
  GTEST_SKIP() << obstacle;
}

std::string AgentLive::promtool(Strings arguments, const std::string& input) {
  arguments.insert(arguments.begin(), Prometheus::promtool());
  Process process({.argv = arguments});
  if (!input.empty()) process.write(input);
  const Outcome outcome = run_through(process);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.out << outcome.err;
  return outcome.out + outcome.err;
}

}  // namespace rtev::test
