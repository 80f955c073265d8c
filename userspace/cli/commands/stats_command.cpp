// SPDX-License-Identifier: MIT
// rtev-bpf stats: what the garbage collector did, by process and domain.
#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/stats/stats_sink.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* stats_footer =
    "GC is the time that domains spent in pauses, of a process the sum over its domains. GC% is its share of the time "
    "that these domains were there: of a domain WALL, of a process with several domains more than its WALL. ALLOC is "
    "what was allocated in minor heaps, PROMOTED what of it was moved to the major heap. With one "
    "process the domains are listed, with several their number. The processes of a program with more than five of them "
    "have one row: sums, and the largest heap. STW LED and FOLLOWED count the stop-the-world "
    "sections that a domain led, and those led by other domains that it took part in. Words (8 bytes) are counted at "
    "collections: before the first one they are unknown. TIME% of a span is TOTAL in the time of the domains, as GC%; "
    "spans at the same time in one domain all count. '+' marks a lower bound; the report says why.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf stats -d 10s                        all OCaml processes for ten seconds\n"
    "  rtev-bpf stats -- ./server                   a program that it starts, until it ends\n"
    "  rtev-bpf stats --gc-tuning -p 1234 -d 60s    do its minor heap and space_overhead fit?";

struct StatsCommandOptions : AnalysisOptions {
  bool by_process = false;
  bool gc_tuning = false;
};

int run_stats(const StatsCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Stats stats({.max_bytes = options.memory_limit / 32,
               .full = options.full,
               .by_process = options.by_process,
               .gc_tuning = options.gc_tuning});
  return analyse(options, invocation, stats, **output, [&](const Registry& registry) {
    return options.json ? stats.report_json(registry) : stats.report_text(registry);
  });
}

}  // namespace

Subcommand add_stats_command(CLI::App& root) {
  auto options = std::make_shared<StatsCommandOptions>();
  CLI::App* const app = root.add_subcommand("stats", "show what the garbage collector did, by process and domain");
  app->footer(stats_footer);
  app->add_flag("--full", options->full, "show a section with all figures and the domains of each process");
  app->add_flag("--gc-tuning", options->gc_tuning,
                "show what the figures say about OCAMLRUNPARAM s= (minor heap) and o= (space_overhead), with the "
                "arithmetic");
  add_rows_option(*app, options->by_process);
  add_analysis_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_stats(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
