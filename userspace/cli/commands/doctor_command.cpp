// SPDX-License-Identifier: MIT
// rtev-bpf doctor: what this host supports.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/json_writer.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "kernel/features.hpp"
#include "session/confinement.hpp"

namespace rtev::cli {
namespace {

const char* name_of(kernel::FeatureStatus status) {
  switch (status) {
    case kernel::FeatureStatus::ok:
      return "ok";
    case kernel::FeatureStatus::degraded:
      return "degraded";
    case kernel::FeatureStatus::missing:
      return "MISSING";
  }
  return "";
}

std::string_view json_name_of(kernel::FeatureStatus status) {
  return status == kernel::FeatureStatus::missing ? "missing" : name_of(status);
}

void print_json(const kernel::HostFeatures& host) {
  JsonWriter json;
  json.object([&] {
    json.member("type", "doctor");
    json.member("schema", 1);
    json.member("can_trace", host.blocking() == nullptr);
    json.key("features").array([&] {
      for (const kernel::Feature& feature : host.features) {
        json.object([&] {
          json.member("name", feature.name);
          json.member("status", json_name_of(feature.status));
          json.member("found", feature.found);
          json.text_or_null("hint", feature.hint);
        });
      }
    });
  });
  fmt::print("{}\n", json.text());
}

/// The commands that let others than root trace.
std::string rights_text() {
  std::string container;
  for (const std::string_view name : kernel::tracer_capabilities())
    container.append(" --cap-add=").append(name.substr(4));
  return fmt::format(
      "\nTo trace this host without root, once:\n  {}\nIn a container:\n  --pid=host{}\n"
      "Programs of your own need none of this: rtev-bpf -- CMD, or rtev-bpf -p PID.\n",
      escaped(kernel::setcap_command()), container);
}

int run_doctor(bool as_json) {
  const kernel::HostFeatures host = kernel::inspect_host();
  if (as_json) {
    print_json(host);
    return finish_stdout(host.blocking() != nullptr ? exit_failure : exit_ok);
  }
  std::size_t width = 0;
  for (const kernel::Feature& feature : host.features) width = std::max(width, feature.name.size());
  for (const kernel::Feature& feature : host.features) {
    fmt::print("{:<8}  {:<{}}  {}\n", name_of(feature.status), feature.name, width, feature.found);
    if (!feature.hint.empty()) fmt::print("{:<8}  {:<{}}  hint: {}\n", "", "", width, feature.hint);
  }
  if (host.lacks_capabilities) fmt::print("{}", rights_text());
  if (const kernel::Feature* blocking = host.blocking()) {
    fmt::print("\nrtev-bpf cannot trace here: {}\n", blocking->name);
    return exit_failure;
  }
  fmt::print("\n{}\nrtev-bpf can trace here.\n", describe_confinement(host.uprobe_multi));
  return finish_stdout(exit_ok);
}

struct DoctorOptions {
  std::vector<std::int32_t> pids;
  bool json = false;
};

}  // namespace

Subcommand add_doctor_command(CLI::App& root) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* const app =
      root.add_subcommand("doctor", "check what this host supports, and say how to get what is missing");
  app->footer(
      "Exit status: 0 if rtev-bpf can trace here, else 1; with -p 0 if the events of all these processes can be "
      "switched on.");
  add_pid_option(*app, options->pids);
  app->get_option("--pid")->description(
      "only what it takes to switch the events of this process on, and what of it is missing; repeatable");
  app->option_defaults()->group("Output");
  add_json_option(*app, options->json);
  app->get_option("--format")->excludes("--pid");
  return {.app = app, .run = [options](const Invocation&) {
            return options->pids.empty() ? run_doctor(options->json) : check_enabling(options->pids);
          }};
}

}  // namespace rtev::cli
