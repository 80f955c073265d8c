// SPDX-License-Identifier: MIT
// rtev-bpf agent: stays on a host, and makes metrics of its OCaml programs for systems that watch many hosts.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/agent/agent_options.hpp"
#include "cli/agent/agent_run.hpp"
#include "cli/commands/subcommands.hpp"

namespace rtev::cli {
namespace {

constexpr const char* agent_footer =
    "Metrics are counted by group, never by pid: a service that is started again goes on counting where it was. "
    "docs/metrics.md lists them; contrib/prometheus has alerts, contrib/grafana a dashboard.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf agent                                   metrics on http://127.0.0.1:9464/metrics\n"
    "  rtev-bpf agent --listen [::]:9464                for a Prometheus on another host\n"
    "  rtev-bpf agent --otlp http://127.0.0.1:4318      push them to a collector of OpenTelemetry\n"
    "  rtev-bpf agent --on 'pause>50ms'                 also keep the seconds around long pauses\n"
    "  rtev-bpf agent --group '{service|exe}/{version}' a group for each version of a service\n"
    "  rtev-bpf agent --user-spans 'request,db.*'       also how long these spans of programs last";

}  // namespace

Subcommand add_agent_command(CLI::App& root) {
  auto options = std::make_shared<AgentOptions>();
  CLI::App* const app = root.add_subcommand("agent", "stay on a host and serve metrics of its OCaml programs");
  app->footer(agent_footer);
  add_agent_options(*app, options);
  return {.app = app, .run = [options](const Invocation& invocation) { return run_agent(*options, invocation); }};
}

}  // namespace rtev::cli
