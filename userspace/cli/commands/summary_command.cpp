// SPDX-License-Identifier: MIT
// rtev-bpf summary: how a program does, on one screen.
#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/summary/summary_sink.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* summary_footer =
    "What stats, latency and pauses say, without their tables: time and CPU time of the GC, how the heap goes on, how "
    "long pauses are, and by which causes the long ones. As JSON their three reports, a line each.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf summary -- ./server                 of a program that it starts, until it ends\n"
    "  rtev-bpf summary -p 1234 -d 10s              of a process, for ten seconds\n"
    "  rtev-bpf summary -i trace.fxt                of a recording";

struct SummaryCommandOptions : AnalysisOptions {
  bool by_process = false;
};

int run_summary(const SummaryCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Summary summary({.input = input_argument(options.input),
                   .by_process = options.by_process,
                   .full = options.full,
                   .max_bytes = options.memory_limit / 4});
  return analyse(options, invocation, summary, **output, [&](const Registry& registry) {
    return options.json ? summary.report_json(registry) : text_about(registry, summary.report_text(registry));
  });
}

}  // namespace

Subcommand add_summary_command(CLI::App& root) {
  auto options = std::make_shared<SummaryCommandOptions>();
  CLI::App* const app = root.add_subcommand("summary", "show how a program does: GC, heap and pauses on one screen");
  app->footer(summary_footer);
  app->add_flag("--full", options->full, "show what stats, latency and pauses show with --full, one after the other");
  add_rows_option(*app, options->by_process);
  add_analysis_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_summary(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
