// SPDX-License-Identifier: MIT
#include "cli/agent/agent_options.hpp"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>

#include "base/option_types.hpp"
#include "base/parse.hpp"
#include "cli/config_file.hpp"

namespace rtev::cli {
namespace {

bool is_header(const std::string& text, AgentOptions& options) {
  const std::size_t equals = text.find('=');
  const bool is_one_line = text.find_first_of("\r\n") == std::string::npos;
  if (equals == 0 || equals == std::string::npos || !is_one_line) return false;
  options.otlp_headers.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return true;
}

void add_metrics_options(CLI::App& app, const std::shared_ptr<AgentOptions>& options) {
  const auto accept_group = [options](const std::string& text) {
    auto parsed = GroupTemplate::parse(text);
    if (!parsed) return false;
    options->metrics.groups = std::move(*parsed);
    options->groups = text;
    return true;
  };
  add_parsed_option(app, "--group", "TEMPLATE",
                    "a template of names in braces (service, version, workload, container, unit, exe, comm, cgroup), "
                    "e.g. '{service|exe}/{version}'",
                    accept_group,
                    "how processes are grouped: {a|b} is a, or b where a process has no a "
                    "(default: {service|workload|unit|exe})");
  add_number_option<std::size_t>(
      app, "--max-groups", options->metrics.max_groups, 1, 1000,
      "keep at most N groups, and count programs of all others as \"other\" (default: 50; each has some 200 "
      "series). Users have equal shares");
  const auto add_globs = [&app](const std::string& name, std::vector<std::string>& globs, const std::string& help) {
    app.add_option(name, globs, help)->type_name("GLOB,...")->delimiter(',')->expected(1)->take_all();
  };
  UserMetricOptions& user = options->metrics.user;
  add_globs("--user-spans", user.spans, "also measure user spans with these names");
  add_globs("--user-events", user.events, "also count user events with these names");
  add_globs("--user-values", user.values, "also report the last values of integer user events with these names");
  app.add_flag("--tasks", options->metrics.tasks, "also count fibers of Eio and tasks of Miou, by state");
}

}  // namespace

void add_agent_options(CLI::App& app, const std::shared_ptr<AgentOptions>& options) {
  // A host has other things to do.
  options->memory_limit = std::size_t{64} << 20;
  add_config_option(app);
  app.add_option("--listen", options->listen,
                 "serve metrics over HTTP here (default: 127.0.0.1:9464); '' for none. A socket that systemd passes "
                 "takes its place")
      ->type_name("ADDRESS:PORT");
  app.add_option(
         "--allow-host", options->allowed_hosts,
         "also answer requests to this name of the host, e.g. '*.example.com'; those to addresses, to localhost "
         "and to the name that the host has itself are answered always. Can be repeated")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  const auto accept_url = [options](const std::string& text) {
    auto parsed = agent::parse_otlp_url(text);
    if (parsed) options->otlp = std::move(*parsed);
    return parsed.has_value();
  };
  CLI::Option* const otlp =
      add_parsed_option(app, "--otlp", "URL", "an http URL of a collector, e.g. http://127.0.0.1:4318", accept_url,
                        "push metrics to this collector of OpenTelemetry, by OTLP over HTTP: to URL/v1/metrics");
  add_time_option(app, "--otlp-interval", options->otlp_interval, "push them every TIME (default: 60s)")->needs(otlp);
  add_parsed_option(
      app, "--otlp-header", "NAME=VALUE", "NAME=VALUE",
      [options](const std::string& text) { return is_header(text, *options); },
      "add this HTTP header to each request, e.g. for authorization. Can be repeated")
      ->needs(otlp)
      ->take_all();
  const auto accept_pause = [options](const std::string& text) {
    const auto time = parse_limit_duration(text);
    if (time) options->metrics.pause_span_ns = static_cast<std::uint64_t>(time->count());
    return time.has_value();
  };
  add_parsed_option(app, "--pause-spans", "TIME", "a time with a unit, e.g. 50ms", accept_pause,
                    "push pauses of this length and longer as spans, with their cause: at most 60 a minute")
      ->needs(otlp);
  add_metrics_options(app, options);
  add_parsed_option(
      app, "--replace", "PID", "the pid of a running agent",
      [options](const std::string& text) {
        options->replaced = parse_number<pid_t>(text);
        return options->replaced && *options->replaced > 0;
      },
      "take the place of this agent, and go on in the background: counters go on where they were, and it listens "
      "on the same socket. If that fails, the other one goes on");
  add_flight_options(app, options->flight);
  add_min_free_option(app, options->flight.min_free,
                      "write no dump while less than this is free on the disk of DIR (default: 5%); 0: always write");
  add_process_options(app, *options);
  add_trace_options(app, *options);
  add_common_options(app, *options);
}

}  // namespace rtev::cli
