// SPDX-License-Identifier: MIT
// rtev-bpf tasks: how long fibers and other tasks run and wait.
#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/tasks/tasks_sink.hpp"
#include "base/option_types.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* tasks_footer =
    "Tasks are the fibers of Eio 0.14 and newer, and the tasks of Miou. Tasks of a domain take turns: one that runs "
    "for "
    "long without letting others run keeps all others of its domain waiting. The report lists these runs, what their "
    "time was spent on, and which tasks they kept waiting: those that could run, and those that were suspended and ran "
    "right after it (\"up to\": when their operation was complete is unknown). WAITED FOR lists by operation how long "
    "tasks were suspended. Limits of --fail-if apply to runs.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf tasks -p 1234 -d 1m                 which fibers of a process keep others waiting\n"
    "  rtev-bpf tasks --fail-if 'max>50ms' -- ./server\n"
    "                                               fails if a fiber of CMD runs longer\n"
    "  rtev-bpf tasks -i trace.fxt --min 1ms        of a recording, runs from 1 ms on";

struct TasksCommandOptions : AnalysisOptions {
  std::chrono::nanoseconds min{TasksOptions{}.min_ns};
};

int run_tasks(const TasksCommandOptions& options, const Invocation& invocation) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  Tasks tasks({.min_ns = static_cast<std::uint64_t>(options.min.count()),
               .full = options.full,
               .input = input_argument(options.input)});
  return analyse(
      options, invocation, tasks, **output,
      [&](const Registry& registry) {
        return options.json ? tasks.report_json() : text_about(registry, tasks.report_text());
      },
      [&] { return tasks.limited(); });
}

}  // namespace

Subcommand add_tasks_command(CLI::App& root) {
  auto options = std::make_shared<TasksCommandOptions>();
  CLI::App* const app = root.add_subcommand("tasks", "show which fibers run for long, and which of them wait for what");
  app->footer(tasks_footer);
  add_time_option(*app, "--min", options->min, "leave out runs shorter than this (default: 10ms)");
  app->add_flag("--full", options->full, "show all long runs, all operations and all tasks that waited");
  add_analysis_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_tasks(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
