// SPDX-License-Identifier: MIT
// rtev-bpf dump: shows a recording, a ring file or the ring of a running process.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/subcommands.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {

Subcommand add_dump_command(CLI::App& root) {
  auto options = std::make_shared<CopyOptions>();
  CLI::App* const app =
      root.add_subcommand("dump", "show a recording, a ring file, or what the ring of a process holds now");
  add_input(*app, *options);
  add_process_options(*app, *options);
  add_output_options(*app, options->output);
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return copy(*options, invocation, Format::text); }};
}

}  // namespace rtev::cli
