// SPDX-License-Identifier: MIT
// rtev-bpf pauses: the longest pauses, each with what it consists of and its cause.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "analysis/pauses/pauses_sink.hpp"
#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* pauses_footer =
    "A pause is the outermost runtime span of a domain. With --sched all the report names every thread that held the "
    "CPU while an OCaml thread waited for it. By default only switches from or to an OCaml thread are traced, which "
    "costs less: then only the first and the last of these threads are known.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf pauses -d 10s                       the long pauses of ten seconds, by cause\n"
    "  rtev-bpf pauses -p 1234 --top 3 --min 1ms    the three longest of a process, from 1 ms on\n"
    "  rtev-bpf pauses -i trace.fxt -f json         of a recording, for programs";

struct PausesCommandOptions : AnalysisOptions {
  std::optional<std::size_t> top{};
  std::chrono::nanoseconds min{0};
};

int run_pauses(const PausesCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Pauses pauses({.top = options.top.value_or(PausesOptions{}.top),
                 .min_ns = static_cast<std::uint64_t>(options.min.count()),
                 .full = options.full,
                 .longest_only = options.top.has_value(),
                 .input = input_argument(options.input),
                 .max_bytes = options.memory_limit / 16});
  return analyse(options, invocation, pauses, **output, [&](const Registry& registry) {
    return options.json ? pauses.report_json() : text_about(registry, pauses.report_text());
  });
}

}  // namespace

Subcommand add_pauses_command(CLI::App& root) {
  auto options = std::make_shared<PausesCommandOptions>();
  CLI::App* const app = root.add_subcommand("pauses", "find the longest GC pauses and their causes");
  app->footer(pauses_footer);
  add_number_option<std::size_t>(*app, "--top", options->top, 1, PausesOptions::max_top,
                                 "report the N longest pauses (default: the longest by each cause; with --full, or "
                                 "as JSON, the 10 longest)");
  add_min_option(*app, options->min);
  app->add_flag("--full", options->full, "show what each pause consists of, and who arrived when at its barriers");
  add_analysis_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_pauses(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
