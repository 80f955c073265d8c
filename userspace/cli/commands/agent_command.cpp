// SPDX-License-Identifier: MIT
// rtev-bpf agent: stays on a host, and makes metrics of its OCaml programs for systems that watch many hosts.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/listen_socket.hpp"
#include "agent/network_process.hpp"
#include "agent/service_manager.hpp"
#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/config_file.hpp"
#include "cli/flight_options.hpp"
#include "cli/flight_run.hpp"
#include "cli/messages.hpp"
#include "cli/reload_signal.hpp"
#include "cli/tracing.hpp"
#include "formats/output/output.hpp"
#include "metrics/metrics_sink.hpp"
#include "metrics/otlp.hpp"
#include "metrics/own_metrics.hpp"
#include "metrics/prometheus_text.hpp"
#include "stream/tee_sink.hpp"

namespace rtev::cli {
namespace {

/// Metrics are looked at every few seconds at most, and a look at a ring costs the same whatever is in it.
constexpr std::chrono::milliseconds agent_delay{1000};

constexpr const char* footer =
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

struct AgentOptions : TraceOptions {
  std::string listen = "127.0.0.1:9464";
  std::optional<agent::OtlpOptions> otlp{};
  std::chrono::nanoseconds otlp_interval{std::chrono::seconds(60)};
  std::vector<std::pair<std::string, std::string>> otlp_headers{};
  MetricsOptions metrics{};
  FlightOptions flight{};
};

/// Tells the service manager from the loop that moves events, so that it notices when that stalls.
class Watchdog final : public ForwardingSink {
 public:
  Watchdog(Sink& sink, const agent::ServiceManager& manager) : ForwardingSink(sink), manager_(manager) {}

  void flush() override {
    sink_.flush();
    const auto interval = manager_.watchdog_interval();
    if (!interval) return;
    const std::uint64_t now = monotonic_ns();
    if (now - last_ns_ < static_cast<std::uint64_t>(std::chrono::nanoseconds(*interval).count())) return;
    last_ns_ = now;
    manager_.notify("WATCHDOG=1");
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    manager_.notify("STOPPING=1");
    sink_.summary(summary, registry);
  }

 private:
  const agent::ServiceManager& manager_;
  std::uint64_t last_ns_ = 0;
};

/// Of the flight recorder.
void add_dump_metrics(MetricVisitor& visitor, const flight::RecorderFigures& figures) {
  visitor.family({.name = "rtev_bpf_dumps", .unit = "", .help = "Dumps of the flight recorder, by result."});
  const auto result = [&](std::string_view name, std::uint64_t count) {
    const MetricLabel label[]{{"result", name}};
    visitor.value(label, static_cast<std::int64_t>(count));
  };
  result("written", figures.written);
  result("failed", figures.failed);
  visitor.family({.name = "rtev_bpf_dumps_suppressed",
                  .unit = "",
                  .help = "Conditions that were met without a dump, by reason; joined: another dump has that time."});
  for (std::size_t i = 0; i < figures.suppressed.size(); ++i) {
    const MetricLabel label[]{{"reason", to_string(static_cast<flight::Suppressed>(i))}};
    visitor.value(label, static_cast<std::int64_t>(figures.suppressed[i]));
  }
  const MetricLabel joined[]{{"reason", "joined"}};
  visitor.value(joined, static_cast<std::int64_t>(figures.joined));
}

EventKinds unused_events(const UserMetricOptions& user) {
  EventKinds unused = kinds_of({EventKind::alloc});
  if (!user.any()) {
    unused |= kinds_of({EventKind::user_unit, EventKind::user_int, EventKind::user_begin, EventKind::user_end,
                        EventKind::user_custom});
  }
  return unused;
}

/// All metrics but those of the network process.
void visit_all(MetricVisitor& visitor, MetricsSink& metrics, FlightRun* flight) {
  metrics.visit(visitor);
  if (flight != nullptr) add_dump_metrics(visitor, flight->recorder().figures());
  add_own_metrics(visitor, metrics.run());
}

std::string make_answer(agent::Request request, MetricsSink& metrics, FlightRun* flight) {
  switch (request) {
    case agent::Request::health:
      return {};
    case agent::Request::metrics: {
      PrometheusText text;
      visit_all(text, metrics, flight);
      return std::string(text.text());
    }
    case agent::Request::otlp_metrics: {
      OtlpMetrics otlp(metrics.run(), monotonic_ns());
      visit_all(otlp, metrics, flight);
      return otlp.request();
    }
    case agent::Request::otlp_spans: {
      const auto spans = metrics.take_pause_spans();
      return spans.empty() ? std::string() : otlp_spans(spans, metrics.run());
    }
  }
  return {};
}

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
    if (parsed) options->metrics.groups = std::move(*parsed);
    return parsed.has_value();
  };
  add_parsed_option(app, "--group", "TEMPLATE",
                    "a template of names in braces (service, version, workload, container, unit, exe, comm, cgroup), "
                    "e.g. '{service|exe}/{version}'",
                    accept_group,
                    "names groups of processes; of names separated by | the first that a process has "
                    "(default: {service|workload|unit|exe})");
  add_number_option<std::size_t>(app, "--max-groups", options->metrics.max_groups, 1, 1000,
                                 "count programs of further groups as \"other\" (default: 50; a group has some 200 "
                                 "series)");
  const auto add_globs = [&app](const std::string& name, std::vector<std::string>& globs, const std::string& help) {
    app.add_option(name, globs, help)->type_name("GLOB,...")->delimiter(',')->expected(1)->take_all();
  };
  UserMetricOptions& user = options->metrics.user;
  add_globs("--user-spans", user.spans, "also how long spans of programs with these names last");
  add_globs("--user-events", user.events, "also how often events of programs with these names happen");
  add_globs("--user-values", user.values, "also the last values of integer events with these names");
}

void add_agent_options(CLI::App& app, const std::shared_ptr<AgentOptions>& options) {
  // A host has other things to do.
  options->memory_limit = std::size_t{64} << 20;
  add_config_option(app);
  app.add_option("--listen", options->listen,
                 "serve metrics over HTTP here (default: 127.0.0.1:9464); '' for none. A socket that systemd passes "
                 "takes its place")
      ->type_name("ADDRESS:PORT");
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
      "send this header, too, e.g. for authorization")
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
  add_flight_options(app, options->flight);
  add_process_options(app, *options);
  add_trace_options(app, *options);
  add_common_options(app, *options);
}

/// The options as the configuration file has them now; nothing if it is wrong, which is reported.
std::shared_ptr<const AgentOptions> read_again(const Invocation& invocation) {
  CLI::App app;
  auto options = std::make_shared<AgentOptions>();
  add_agent_options(app, options);
  constexpr std::ptrdiff_t program_and_subcommand = 2;
  std::vector<std::string> arguments(invocation.arguments.rbegin(),
                                     invocation.arguments.rend() - program_and_subcommand);
  try {
    app.parse(arguments);
    return options;
  } catch (const CLI::ParseError& error) {
    say(fmt::format("rtev-bpf: the configuration stays as it was: {}\n", error.what()));
    return nullptr;
  }
}

int run_agent(const AgentOptions& options, const Invocation& invocation) {
  const agent::ServiceManager manager;
  agent::NetworkOptions network{.listener = agent::take_passed_socket(), .otlp = options.otlp};
  if (!network.listener && !options.listen.empty()) {
    auto listener = agent::listen_on(options.listen);
    if (!listener) return report(listener.error());
    network.listener = std::move(*listener);
  }
  if (network.otlp) {
    network.otlp->headers = options.otlp_headers;
    network.otlp->interval = std::chrono::ceil<std::chrono::milliseconds>(options.otlp_interval);
    network.otlp->spans = options.metrics.pause_span_ns != 0;
  }
  const std::string address = network.listener ? agent::address_of(network.listener) : std::string();
  auto process = agent::NetworkProcess::start(std::move(network));
  if (!process) return report(process.error());
  std::unique_ptr<FlightRun> flight;
  if (options.flight.is_on()) {
    auto started = FlightRun::start(options.flight);
    if (!started) return report(started.error());
    flight = std::move(*started);
  }
  // Whoever explains pauses needs all switches: other programs took the CPU.
  const bool explains = flight || options.metrics.pause_span_ns != 0;
  MetricsSink metrics(options.metrics);
  std::optional<TeeSink> both;
  if (flight) both.emplace(metrics, *flight);
  Watchdog sink(both ? static_cast<Sink&>(*both) : metrics, manager);
  StringOutput output;  // to which nothing is written
  ReloadSignal reload;
  const auto on_reload = [&] {
    reload.take();
    manager.notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns() / 1000));
    if (const auto changed = read_again(invocation)) {
      metrics.change(changed->metrics.user, changed->metrics.pause_span_ns);
      say("Configuration read again: --user-spans, --user-events, --user-values, --pause-spans. Others need a "
          "restart.\n");
    }
    manager.notify("READY=1");
  };
  const auto answer = [&] {
    process->answer([&](agent::Request request) { return make_answer(request, metrics, flight.get()); });
  };
  const auto on_ready = [&] {
    reload.catch_it();
    if (flight) flight->serve({});
    manager.notify("READY=1");
    if (!options.quiet && !address.empty()) say(fmt::format("Metrics: http://{}/metrics\n", address));
  };
  return trace(options, invocation,
               {.sink = sink,
                .output = output,
                .max_delay = agent_delay,
                .unused = explains ? EventKinds() : unused_events(options.metrics.user),
                .sums_usage = !explains,
                .shows_services = true,
                .watched = {{.fd = process->event_fd(), .on_readable = answer},
                            {.fd = reload.event_fd(), .on_readable = on_reload}},
                .on_ready = on_ready,
                .is_service = true});
}

}  // namespace

Subcommand add_agent_command(CLI::App& root) {
  auto options = std::make_shared<AgentOptions>();
  CLI::App* const app = root.add_subcommand("agent", "stay on a host and serve metrics of its OCaml programs");
  app->footer(footer);
  add_agent_options(*app, options);
  return {.app = app, .run = [options](const Invocation& invocation) { return run_agent(*options, invocation); }};
}

}  // namespace rtev::cli
