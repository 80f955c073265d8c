// SPDX-License-Identifier: MIT
// rtev-bpf stalls: threads that did not return to their event loop for long.
#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/stalls/stalls_sink.hpp"
#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"
#include "cli/tracing.hpp"
#include "session/rootless/thread_sampler.hpp"

namespace rtev::cli {
namespace {

constexpr const char* stalls_footer =
    "A thread has an event loop if it waits again and again in select, poll, epoll_wait or io_uring_enter. A turn of "
    "the loop is the time between two of these waits. A stall is a turn of at least --min that is more than five times "
    "as long as the median turn. The report says what the thread did in it: on a CPU in its own code, in the GC, "
    "blocked in the GC, waiting for a CPU, or blocked in another system call. A loop that finds events each time "
    "without "
    "waiting for them appears as one long turn. Limits of --fail-if apply to stalls.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf stalls -p 1234 -d 1m                what blocks the event loop of a process\n"
    "  rtev-bpf stalls --fail-if 'max>200ms' -- ./server\n"
    "                                               fails if a stall of CMD is longer\n"
    "  rtev-bpf stalls -i trace.fxt --min 10ms      of a recording, from 10 ms on";

struct StallsCommandOptions : AnalysisOptions {
  std::size_t top = StallsOptions{}.top;
  std::chrono::nanoseconds min{StallsOptions{}.min_ns};
};

int run_stalls(const StallsCommandOptions& options, const Invocation& invocation) {
  if (options.input.empty() && options.sched == RTEV_SCHED_OFF)
    return report(Error{.what = "stalls needs scheduler events", .why = "--sched off leaves them out"});
  const bool samples_threads = options.input.empty() && lacks_bpf(options);
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Stalls stalls({.min_ns = static_cast<std::uint64_t>(options.min.count()),
                 .top = options.top,
                 .full = options.full,
                 .sample_interval_ns = samples_threads ? ThreadSampler::interval_ns : 0,
                 .input = input_argument(options.input)});
  return analyse(
      options, invocation, stalls, **output,
      [&](const Registry& registry) {
        return options.json ? stalls.report_json() : text_about(registry, stalls.report_text());
      },
      [&] { return stalls.limited(); }, samples_threads);
}

}  // namespace

Subcommand add_stalls_command(CLI::App& root) {
  auto options = std::make_shared<StallsCommandOptions>();
  CLI::App* const app = root.add_subcommand("stalls", "find what blocks event loops");
  app->footer(stalls_footer);
  add_number_option<std::size_t>(*app, "--top", options->top, 1, Stalls::max_stalls,
                                 "list the N longest stalls (default: up to 10)");
  add_time_option(*app, "--min", options->min, "leave out stalls shorter than this (default: 50ms)");
  app->add_flag("--full", options->full, "show all that is known of each stall");
  add_analysis_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_stalls(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
