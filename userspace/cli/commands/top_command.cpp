// SPDX-License-Identifier: MIT
// rtev-bpf top: what OCaml programs do now, second by second.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/top_run.hpp"

namespace rtev::cli {
namespace {

constexpr const char* top_footer =
    "Where stdout is no terminal, or TERM is dumb, text is printed, as with -b. NO_COLOR switches colours "
    "off; a value that is worth a look has a !, too.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf top                                 all, those with the longest pauses first\n"
    "  rtev-bpf top --sort growth                   those whose heaps grow most\n"
    "  rtev-bpf top -b -n 10                        as text, ten times\n"
    "  rtev-bpf top -i trace.fxt                    of a recording, in the time that it took\n"
    "\n"
    "Keys: up and down choose a process, Enter shows its domains, the causes of its pauses and its spans; s sorts by "
    "the next column, / filters, p pauses, left and right go back and forth in time, d writes a recording of the last "
    "seconds, h explains the columns, q quits.";

}  // namespace

Subcommand add_top_command(CLI::App& root) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* const app = root.add_subcommand("top", "watch OCaml processes: pauses, GC, heap and CPU, second by second");
  app->footer(top_footer);
  CLI::Option* const input = add_selected_input(*app, options->input, *options, "--name");
  app->option_defaults()->group("Output");
  app->add_flag("-b,--batch", options->batch, "print text instead of a screen");
  add_number_option<std::uint64_t>(*app, "-n,--frames", options->max_intervals, 1, UINT32_MAX,
                                   "with -b: end after N intervals (processes by name: --name)");
  add_time_option(*app, "--interval", options->interval,
                  "show new figures after each TIME, of that time (default: 1s)");
  add_choice<std::string>(
      *app, "--sort", options->sort,
      [] {
        std::vector<std::pair<std::string, std::string>> choices;
        for (const std::string& name : top::sort_names()) choices.emplace_back(name, name);
        return choices;
      }(),
      "sort by this column, greatest first: longest pause (default), GC time, allocation, growth of the heap, "
      "waits for a CPU ...; h explains all");
  app->add_option("--filter", options->filter, "on the screen: only processes whose name or pid contains this")
      ->type_name("TEXT");
  add_rows_option(*app, options->by_process);
  add_json_option(*app, options->json);
  app->get_option("--format")->description("json: print an object for each interval, in a line, as with -b");
  add_time_option(*app, "--keep", options->keep, "how many of the last seconds d writes (default: 10s)");
  app->add_option("--dumps", options->dumps,
                  "the directory that d writes to (default: /var/lib/rtev-bpf for root, else ~/.local/state/rtev-bpf)")
      ->type_name("DIR");
  add_trace_options(*app, *options);
  add_common_options(*app, *options);
  exclude_tracing(*app, *input);
  return {.app = app, .run = [options](const Invocation& invocation) { return run_top(*options, invocation); }};
}

}  // namespace rtev::cli
