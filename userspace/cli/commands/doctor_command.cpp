// SPDX-License-Identifier: MIT
// rtev-bpf doctor: what this host supports.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/exit_status.hpp"
#include "cli/commands/subcommands.hpp"
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

int run_doctor() {
  const kernel::HostFeatures host = kernel::inspect_host();
  std::size_t width = 0;
  for (const kernel::Feature& feature : host.features) width = std::max(width, feature.name.size());
  for (const kernel::Feature& feature : host.features) {
    fmt::print("{:<8}  {:<{}}  {}\n", name_of(feature.status), feature.name, width, feature.found);
    if (!feature.hint.empty()) fmt::print("{:<8}  {:<{}}  hint: {}\n", "", "", width, feature.hint);
  }
  if (const kernel::Feature* blocking = host.blocking()) {
    fmt::print("\nrtev-bpf cannot trace here: {}\n", blocking->name);
    return exit_failure;
  }
  fmt::print("\n{}\nrtev-bpf can trace here.\n", describe_confinement(host.uprobe_multi));
  return exit_ok;
}

}  // namespace

Subcommand add_doctor_command(CLI::App& root) {
  auto pids = std::make_shared<std::vector<std::int32_t>>();
  CLI::App* const app =
      root.add_subcommand("doctor", "check what this host supports, and say how to get what is missing");
  app->footer(
      "Exit status: 0 if rtev-bpf can trace here, else 1; with -p 0 if the events of all these processes can be "
      "switched on.");
  add_pid_option(*app, *pids);
  app->get_option("--pid")->description(
      "only what it takes to switch the events of this process on, and what of it is missing; repeatable");
  return {.app = app,
          .run = [pids](const Invocation&) { return pids->empty() ? run_doctor() : check_enabling(*pids); }};
}

}  // namespace rtev::cli
