// SPDX-License-Identifier: MIT
// rtev-bpf convert: writes a recording or a ring file in another format.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/subcommands.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {

Subcommand add_convert_command(CLI::App& root) {
  auto options = std::make_shared<CopyOptions>();
  CLI::App* const app = root.add_subcommand("convert", "write a recording or a ring in another format");
  add_input(*app, *options);
  add_process_options(*app, *options);
  add_recording_options(*app, options->output);
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return copy(*options, invocation, Format::fxt); }};
}

}  // namespace rtev::cli
