// SPDX-License-Identifier: MIT
// rtev-bpf dump: shows a recording, a ring file or the ring of a running process.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/subcommands.hpp"
#include "cli/reading.hpp"
#include "cli/stream_writer.hpp"

namespace rtev::cli {
namespace {

/// Who names a part of a recording wants to see each event in it.
int run_dump(const CopyOptions& options, const Invocation& invocation) {
  const Format otherwise = options.window.is_whole() ? format_for_people(options.output) : Format::text;
  return copy(options, invocation, otherwise);
}

constexpr const char* dump_footer =
    "Examples:\n"
    "  rtev-bpf dump trace.fxt --all                show every event of a recording\n"
    "  rtev-bpf dump trace.fxt --events user        only its user events and losses\n"
    "  rtev-bpf dump 1234                           what the ring of process 1234 holds now";

}  // namespace

Subcommand add_dump_command(CLI::App& root) {
  auto options = std::make_shared<CopyOptions>();
  CLI::App* const app = root.add_subcommand("dump", "show a recording, a ring file, or the ring of a process");
  app->footer(dump_footer);
  add_input_options(*app, *options);
  add_output_options(*app, options->output);
  add_common_options(*app, *options);
  app->add_flag("-v,--verbose", options->output.all_frames,
                "print all functions of stacks, not only the innermost one");
  return {.app = app, .run = [options](const Invocation& invocation) { return run_dump(*options, invocation); }};
}

}  // namespace rtev::cli
