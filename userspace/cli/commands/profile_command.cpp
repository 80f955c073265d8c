// SPDX-License-Identifier: MIT
// rtev-bpf profile: where the CPU time goes, or what threads wait for.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/profile_output.hpp"

namespace rtev::cli {
namespace {

constexpr const char* profile_footer =
    "SELF is the share of samples in the function itself, TOTAL that of samples with the function anywhere in their "
    "stack; a function that calls itself counts once. Samples in the GC count for the OCaml function that led there: "
    "GC is the part of SELF that was in the GC. Shares are of CPU time, or with --off-cpu of the time that threads "
    "slept, without the runtime's own threads (backup, tick); they count for the OCaml function that had the thread "
    "sleep.\n"
    "With --in, INSIDE is the share of samples in slow spans that have the function, and ELSEWHERE that of all other "
    "samples. Spans belong to the threads of their domain; a GC pause stops all domains, so of 'pause' the samples of "
    "all threads of the process count.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf profile -- ./server                  of a program that it starts\n"
    "  rtev-bpf profile -p 1234 -d 10s -o cpu.html   a flame graph of a process\n"
    "  rtev-bpf profile -i trace.fxt --in 'pause>10ms'\n"
    "                                                what runs in long GC pauses more than usual\n"
    "  rtev-bpf profile --off-cpu -n server          what the threads of a program wait for";

struct ProfileCommandOptions : AnalysisOptions {
  ProfileBy by = ProfileBy::function;
  std::optional<SpanCondition> in;
  bool off_cpu = false;
  bool has_min_sleep = false;  ///< --off-cpu has a time
};

int run_command(ProfileCommandOptions options, const Invocation& invocation) {
  options.stacks.on_cpu = !options.off_cpu;
  options.stacks.off_cpu = options.off_cpu;
  // A recording has what it has: without TIME all of it counts.
  const auto min_sleep = static_cast<std::uint64_t>(options.has_min_sleep ? options.stacks.off_cpu_min.count() : 0);
  return run_profile(
      options, invocation,
      {.kind = options.off_cpu ? SampleKind::off_cpu : SampleKind::on_cpu,
       .by = options.by,
       .in = options.in,
       .min_weight = min_sleep},
      [&](const ProfileReport& report) { return options.json ? profile_json(report) : profile_text(report); });
}

}  // namespace

Subcommand add_profile_command(CLI::App& root) {
  auto options = std::make_shared<ProfileCommandOptions>();
  CLI::App* const app = root.add_subcommand("profile", "show where CPU time goes, by function and line");
  app->footer(profile_footer);
  add_choice<ProfileBy>(*app, "--by", options->by,
                        {{"function", ProfileBy::function},
                         {"line", ProfileBy::line},
                         {"domain", ProfileBy::domain},
                         {"process", ProfileBy::process},
                         {"program", ProfileBy::program},
                         {"gc-phase", ProfileBy::gc_phase},
                         {"user-span", ProfileBy::user_span}},
                        "what the table has a row for (default: function)");
  add_parsed_option(
      *app, "--in", "NAME[>TIME]", "a name, with a time and its unit if there is a >, e.g. 'request>20ms'",
      [options](const std::string& text) {
        options->in = parse_span_condition(text);
        return options->in.has_value();
      },
      "compare the samples in user spans of this name (wildcards allowed) with all others: which functions are there "
      "more than usual? With >TIME only those in longer spans; 'pause' stands for GC pauses");
  add_parsed_option(
      *app, "--off-cpu", "[TIME]", "a time above zero, e.g. 5ms",
      [options](const std::string& text) {
        options->off_cpu = true;
        if (text.empty()) return true;
        const auto time = parse_duration(text);
        if (time) options->stacks.off_cpu_min = *time;
        options->has_min_sleep = true;
        return time.has_value();
      },
      "what threads wait for: the stacks of those that sleep for TIME or longer (default when tracing: 1ms)")
      ->expected(0, 1);
  app->add_flag("--full", options->full, "show more rows, and the whole tree of calls");
  add_profile_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_command(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
