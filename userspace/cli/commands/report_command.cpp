// SPDX-License-Identifier: MIT
// rtev-bpf report: everything about a run in one HTML file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "analysis/html_report/html_report_sink.hpp"
#include "base/escape.hpp"
#include "base/help_formatter.hpp"
#include "base/text_format.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/output_name.hpp"
#include "cli/reading.hpp"
#include "formats/report/html_report.hpp"

namespace rtev::cli {
namespace {

constexpr const char* report_footer =
    "The report is one HTML file that loads nothing: send it to a colleague, keep it with a release. It begins with "
    "what was found, the worst first, each with what to do next. Then come the pauses over time and by cause, the "
    "worst ones drawn with what all domains did, heap and rates, phases, user spans, flame graphs, and what was lost. "
    "Its figures are those of latency, pauses and stats of the same events. With --stacks it says in which line of the "
    "program a pause waited or worked.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf report -i trace.fxt -o report.html   of a recording\n"
    "  rtev-bpf report --stacks -- ./server          of a program that it starts, until it ends\n"
    "  rtev-bpf report -p 1234 -d 10s -o now.html    of a process, for ten seconds";

constexpr std::string_view html_suffix = ".html";

int run_report(const AnalysisOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  if ((*output)->is_terminal())
    return report(Error{.what = "refusing to write HTML to",
                        .subject = "a terminal",
                        .why = "it is HTML, for a browser",
                        .hint = "give a file with -o, or redirect stdout"});
  HtmlReportSink sink({.input = input_argument(options.input), .max_bytes = options.memory_limit / 4});
  bool has_processes = false;
  const int status = analyse(options, invocation, sink, **output, [&](const Registry& registry) {
    HtmlReport report = sink.report(registry);
    has_processes = report.stats.process_count > 0;
    return html_report(std::move(report));
  });
  const bool is_written = has_processes && !(*output)->error() && (*output)->written() > 0;
  if (is_written && (*output)->is_regular_file() && !options.quiet)
    say(fmt::format("wrote {} ({}): open it in a browser\n", Escaped{(*output)->name()}, Size{(*output)->written()}));
  return status;
}

/// After the parsing: gives the report a name, and refuses one of something else.
void complete_report_name(const CLI::App& app, AnalysisOptions& options) {
  if (app.count("--output") == 0 || options.output == unnamed_file) options.output = default_file_name(html_suffix);
  if (options.output.empty()) throw CLI::ValidationError("--output", "the file name is empty");
  const std::string_view name = options.output;
  const std::size_t dot = name.substr(name.rfind('/') + 1).rfind('.');
  if (dot == std::string_view::npos || dot == 0 || name == "-" || name.starts_with("/dev/") ||
      name.ends_with(html_suffix) || name.ends_with(".htm"))
    return;
  throw CLI::ParseError(
      fmt::format("cannot write to {}: a report is an HTML file\nhint: give a file with the suffix {}",
                  escaped(options.output), html_suffix),
      CLI::ExitCodes::ValidationError);
}

}  // namespace

Subcommand add_report_command(CLI::App& root) {
  auto options = std::make_shared<AnalysisOptions>();
  options->file_suffixes = {html_suffix};
  CLI::App* const app = root.add_subcommand("report", "write one HTML file: findings, pauses, heap and flame graphs");
  app->footer(report_footer);
  add_analysis_options(*app, *options);
  app->remove_option(app->get_option("--format"));
  app->get_option("--output")->description("the file to write (default: rtev-HOST-TIME.html), or - for stdout");
  set_values(*app, *app->get_option("--output"), {.suffixes = {std::string(html_suffix)}});
  app->get_option("--verbose")->description("when it traces, also print messages of libbpf");
  app->final_callback([app, options] { complete_report_name(*app, *options); });
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_report(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
