// SPDX-License-Identifier: MIT
// rtev-bpf doctor: what this host supports.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/exit_status.hpp"
#include "cli/commands/doctor_report.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "kernel/features.hpp"
#include "session/confinement.hpp"

namespace rtev::cli {
namespace {

int run_doctor(bool as_json) {
  const kernel::HostFeatures host = kernel::inspect_host();
  fmt::print("{}", as_json ? doctor_json(host)
                           : doctor_text(host, kernel::setcap_command(), describe_confinement(host.uprobe_multi)));
  return finish_stdout(host.blocking() != nullptr ? exit_failure : exit_ok);
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
      "check only whether the events of this process can be switched on, and what is missing for that; repeatable");
  app->option_defaults()->group("Output");
  add_json_option(*app, options->json);
  app->get_option("--format")->excludes("--pid");
  return {.app = app, .run = [options](const Invocation&) {
            return options->pids.empty() ? run_doctor(options->json) : check_enabling(options->pids);
          }};
}

}  // namespace rtev::cli
