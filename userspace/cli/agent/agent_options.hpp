// SPDX-License-Identifier: MIT
// Options of `rtev-bpf agent`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/otlp_exporter.hpp"
#include "cli/flight_options.hpp"
#include "cli/options.hpp"
#include "metrics/metrics_sink.hpp"

namespace rtev::cli {

struct AgentOptions : TraceOptions {
  std::string listen = "127.0.0.1:9464";
  std::vector<std::string> allowed_hosts{};  ///< globs
  std::optional<agent::OtlpOptions> otlp{};
  std::chrono::nanoseconds otlp_interval{std::chrono::seconds(60)};
  std::vector<std::pair<std::string, std::string>> otlp_headers{};
  MetricsOptions metrics{};
  std::string groups{GroupTemplate::standard};  ///< the template of `metrics`
  FlightOptions flight{};
  std::optional<pid_t> replaced{};  ///< the agent to replace
};

/// From the command line and a configuration file.
void add_agent_options(CLI::App& app, const std::shared_ptr<AgentOptions>& options);

}  // namespace rtev::cli
