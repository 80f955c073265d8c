// SPDX-License-Identifier: MIT
// rtev-bpf diff: what changed between two recordings.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "analysis/diff/diff_report.hpp"
#include "analysis/diff/recorded_run_sink.hpp"
#include "base/exit_status.hpp"
#include "base/folding.hpp"
#include "base/option_types.hpp"
#include "base/parse.hpp"
#include "base/terminal.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/input.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/stream_writer.hpp"
#include "rtev/version.hpp"

namespace rtev::cli {
namespace {

constexpr const char* diff_footer =
    "Processes are matched by the name of their program; those of one program count together. If each recording has "
    "one "
    "program, these two are compared, whatever their names. Both recordings are cut into slices of the same length, so "
    "that the shorter one has 20 to 40. A figure has changed if its values in the slices of B differ from those of A "
    "by "
    "more than chance, by more than --min-change, and by more than a floor, e.g. 10 µs. The tests are described in "
    "rtev-bpf(8).\n"
    "SYMPTOMS are what users suffer from: pauses, time in the GC, the heap, times of user spans. By these B is called "
    "better or worse. CAUSES are what may be behind them: settings, calls of Gc, waits for a CPU, allocation.\n"
    "A recording is one run of a program. What differs from run to run, such as other load on the host, is a change, "
    "too: "
    "record for long enough, under the same load, and leave out the start with --from.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf diff before.fxt after.fxt           what a release changed\n"
    "  rtev-bpf diff a.fxt b.fxt -n server --from 10\n"
    "                                               of one program, without its first 10 seconds\n"
    "  rtev-bpf diff a.fxt b.fxt --fail-on-regression --min-change 10%\n"
    "                                               for continuous integration";

struct DiffCommandOptions : CompareOptions {
  double min_change = DiffOptions{}.min_change;
  bool fails_on_regression = false;
};

int run_diff(const DiffCommandOptions& options) {
  survive_output_failures();
  if (options.before == "-" && options.after == "-")
    return report(Error{.what = "cannot compare", .subject = "stdin", .why = "it can be read only once"});
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  auto inputs = Input::open_recordings({options.before, options.after}, options);
  if (!inputs) return report(inputs.error());
  for (const Input& input : *inputs)
    if (auto apart = input.check_apart(**output); !apart) return report(apart.error());
  std::array<RecordedRun, 2> runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RecordedRunSink sink;
    if (const int status = (*inputs)[i].read(sink, true); status != exit_ok) return status;
    runs[i] = sink.take();
  }
  DiffReport report = compare(runs[0], runs[1], {.min_change = options.min_change, .full = options.full});
  report.version = RTEV_VERSION;
  report.a.file = options.before;
  report.b.file = options.after;
  fit_terminal(terminal_columns((*output)->fd()));
  (*output)->begin();
  (*output)->write(options.json ? diff_json(report) : diff_text(report));
  int status = exit_ok;
  if (const std::string regression = report.regression(); options.fails_on_regression && !regression.empty()) {
    say("rtev-bpf: failed: " + regression + " (--fail-on-regression)\n");
    status = exit_limit;
  }
  return finish_output(**output, status);
}

}  // namespace

Subcommand add_diff_command(CLI::App& root) {
  auto options = std::make_shared<DiffCommandOptions>();
  CLI::App* const app = root.add_subcommand("diff", "show what changed between two recordings, and what is noise");
  app->footer(diff_footer);
  app->add_flag("--full", options->full, "show all figures of all programs, also those that did not change");
  add_parsed_option(
      *app, "--min-change", "PERCENT", "a percentage, e.g. 10%",
      [options](const std::string& text) {
        const auto share = parse_percentage(text);
        options->min_change = share.value_or(0);
        return share.has_value();
      },
      "leave out smaller changes of a figure (default: 5%). Of durations, which vary more from run to run, 2 times "
      "that; "
      "of their 99th percentiles 8 times, of the longest 10 times");
  app->add_flag("--fail-on-regression", options->fails_on_regression,
                "exit with status 3 if something is significantly worse in B, or if nothing could be compared");
  add_compare_options(*app, *options);
  return {.app = app, .run = [options](const Invocation&) { return run_diff(*options); }};
}

}  // namespace rtev::cli
