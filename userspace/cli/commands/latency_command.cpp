// SPDX-License-Identifier: MIT
// rtev-bpf latency: how long the pauses of OCaml programs are.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "analysis/latency/latency_sink.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* footer =
    "A pause is the outermost runtime span of a domain. Percentiles are those of olly latency: percentile P is the "
    "duration that P % of the pauses do not exceed, to three significant digits. ON-CPU, RUNNABLE and BLOCKED "
    "have percentiles of their own: the values in one line may belong to different pauses. In the last table ONCPU, "
    "RUNBL and BLOCK are shares of TOTAL. '!' at the end of a line: data is missing, so counts and totals are lower "
    "bounds.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf latency -- ./server                 of a program that it starts\n"
    "  rtev-bpf latency --interval 5s               every five seconds, until Ctrl-C\n"
    "  rtev-bpf latency -i trace.fxt --phase minor  of a recording, for minor collections";

struct LatencyCommandOptions : AnalysisOptions {
  std::string phase;
  std::chrono::nanoseconds min{0}, interval{0};
  bool full = false;
  bool olly = false;
};

int run_latency(const LatencyCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Latency latency({.format = options.json ? LatencyOptions::Format::json : LatencyOptions::Format::text,
                   .rule = options.olly ? PauseRule::olly : PauseRule::outermost,
                   .phase = options.phase,
                   .min_ns = static_cast<std::uint64_t>(options.min.count()),
                   .interval_ns = static_cast<std::uint64_t>(options.interval.count()),
                   .full = options.full,
                   .max_bytes = options.memory_limit / 4},
                  **output);
  // It writes its reports itself, also before the end.
  return analyse(options, invocation, latency, **output, [](const Registry&) { return std::string(); });
}

}  // namespace

Subcommand add_latency_command(CLI::App& root) {
  auto options = std::make_shared<LatencyCommandOptions>();
  CLI::App* const app = root.add_subcommand("latency", "show how long GC pauses are, as percentiles");
  app->footer(footer);
  app->add_option("--phase", options->phase, "measure the spans of this phase instead of pauses, e.g. minor")
      ->type_name("NAME")
      ->check(expects("a phase\nhint: phases are named as in the stream, e.g. minor, major_slice, stw_leader",
                      [](const std::string& name) { return is_phase_name(name); }));
  add_min_option(*app, options->min);
  add_time_option(*app, "--interval", options->interval,
                  "also report every TIME, on that interval and on the run so far");
  app->add_flag("--full", options->full, "show all percentiles of each process and domain");
  app->add_flag("--olly", options->olly,
                "count only the pauses that olly latency counts: major, stw_leader and interrupt_remote");
  add_analysis_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_latency(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
