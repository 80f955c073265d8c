// SPDX-License-Identifier: MIT
// rtev-bpf dump: shows a recording, a ring file or the ring of a running process.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/subcommands.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* footer =
    "Examples:\n"
    "  rtev-bpf dump trace.fxt                      show a recording\n"
    "  rtev-bpf dump trace.fxt --events user        only its user events and losses\n"
    "  rtev-bpf dump 1234                           what the ring of process 1234 holds now";

}  // namespace

Subcommand add_dump_command(CLI::App& root) {
  auto options = std::make_shared<CopyOptions>();
  CLI::App* const app =
      root.add_subcommand("dump", "show a recording, a ring file, or what the ring of a process holds now");
  app->footer(footer);
  add_input_options(*app, *options);
  add_output_options(*app, options->output);
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return copy(*options, invocation, Format::text); }};
}

}  // namespace rtev::cli
