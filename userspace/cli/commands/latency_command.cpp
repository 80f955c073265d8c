// SPDX-License-Identifier: MIT
// rtev-bpf latency: how long the pauses of OCaml programs are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/latency/latency_sink.hpp"
#include "analysis/spans/span_condition.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"
#include "cli/suggestion.hpp"

namespace rtev::cli {
namespace {

constexpr const char* latency_footer =
    "A pause is the outermost runtime span of a domain. P50 is the duration that 50 % of the pauses do not exceed, to "
    "three significant digits; percentiles are those of olly latency. ONCPU, RUNBL and BLOCK are shares of TOTAL. With "
    "--full, ON-CPU, RUNNABLE and BLOCKED have percentiles of their own: the values in one line may belong to "
    "different pauses. '!' at the end of a line: data is missing, so counts and totals are lower bounds.\n"
    "With --span, CODE is time on a CPU outside of the GC, GC time on a CPU in it, GC WAIT time blocked in the GC, "
    "mostly waiting for other domains, and BLOCKED time blocked elsewhere: locks, input and output, sleeping.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf latency -- ./server                 of a program that it starts\n"
    "  rtev-bpf latency --interval 5s               every five seconds, until Ctrl-C\n"
    "  rtev-bpf latency --span request              of the spans that programs mark themselves\n"
    "  rtev-bpf latency -i trace.fxt --phase minor  of a recording, for minor collections";

struct LatencyCommandOptions : AnalysisOptions {
  std::string phase;
  std::optional<SpanCondition> span;
  std::chrono::nanoseconds min{0}, interval{0};
  bool olly = false, by_process = false;
};

/// Of --phase; empty if there is such a phase.
std::string phase_error(const std::string& name) {
  const std::vector<std::string> names = phase_names();
  if (std::ranges::find(names, name) != names.end()) return {};
  const auto similar = similar_word(name, names);
  return fmt::format(
      "'{}' is not a phase\nhint: {}phases, e.g. minor, major_slice, stw_leader, are in the manual page; spans that a "
      "program marks itself: --span NAME",
      escaped(name), similar ? "did you mean " + *similar + "? " : "");
}

int run_spans(const LatencyCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Spans spans({.pattern = options.span->pattern,
               .min_ns = options.span->min_ns,
               .input = input_argument(options.input),
               .full = options.full});
  const int status = analyse(
      options, invocation, spans, **output,
      [&](const Registry& registry) {
        return options.json ? spans.report_json() : text_about(registry, spans.report_text());
      },
      [&] { return spans.limited(); });
  // As for names of programs: of what is recorded a pattern that matches nothing is an error.
  const bool matches_none = !options.input.empty() && spans.limited().all.empty();
  return status == exit_ok && matches_none ? exit_failure : status;
}

int run_latency(const LatencyCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Latency latency({.format = options.json ? LatencyOptions::Format::json : LatencyOptions::Format::text,
                   .rule = options.olly ? PauseRule::olly : PauseRule::outermost,
                   .phase = options.phase,
                   .min_ns = static_cast<std::uint64_t>(options.min.count()),
                   .interval_ns = static_cast<std::uint64_t>(options.interval.count()),
                   .full = options.full,
                   .by_process = options.by_process,
                   .max_bytes = options.memory_limit / 4},
                  **output);
  // It writes its reports itself, also before the end.
  return analyse(options, invocation, latency, **output, {});
}

}  // namespace

Subcommand add_latency_command(CLI::App& root) {
  auto options = std::make_shared<LatencyCommandOptions>();
  CLI::App* const app = root.add_subcommand("latency", "show how long GC pauses are, or spans of your own");
  app->footer(latency_footer);
  CLI::Option* const phase =
      app->add_option("--phase", options->phase, "measure the spans of this phase instead of pauses, e.g. minor")
          ->type_name("NAME")
          ->check(CLI::Validator(phase_error, ""));
  set_values(*app, *phase, {.words = phase_names()});
  CLI::Option* const span = add_parsed_option(
      *app, "--span", "NAME[>TIME]", "a name, with a time and its unit if there is a >, e.g. 'request>20ms'",
      [options](const std::string& text) {
        options->span = parse_span_condition(text);
        return options->span.has_value();
      },
      "measure the user spans of this name (wildcards allowed) instead of pauses, and what their time was spent on; "
      "with >TIME only those that are longer, e.g. 'request>20ms'");
  add_min_option(*app, options->min);
  add_time_option(
      *app, "--interval", options->interval,
      "also print a line for each process every TIME; as JSON reports of that interval and of the run so far");
  app->add_flag("--full", options->full,
                "show all percentiles of each process and domain; with --span all names and more of the slowest spans");
  app->add_flag("--olly", options->olly,
                "count only the pauses that olly latency counts: major, stw_leader and interrupt_remote");
  add_analysis_options(*app, *options);
  add_rows_option(*app, options->by_process);
  for (const char* const other : {"--phase", "--interval", "--olly", "--min", "--by"})
    span->excludes(app->get_option(other));
  return {.app = app,
          .run =
              [options](const Invocation& invocation) {
                return !options->span ? run_latency(*options, invocation) : run_spans(*options, invocation);
              },
          .takes_command = true};
}

}  // namespace rtev::cli
