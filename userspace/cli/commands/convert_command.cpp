// SPDX-License-Identifier: MIT
// rtev-bpf convert: writes a recording or a ring file in another format.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/subcommands.hpp"
#include "cli/reading.hpp"

namespace rtev::cli {
namespace {

constexpr const char* convert_footer =
    "Examples:\n"
    "  rtev-bpf convert trace.fxt -o trace.pftrace           for ui.perfetto.dev and trace_processor\n"
    "  rtev-bpf convert trace.fxt -p 1234 -o one.fxt         one process of a recording\n"
    "  rtev-bpf convert trace.fxt -f json -o - | jq .type    for scripts";

}  // namespace

Subcommand add_convert_command(CLI::App& root) {
  auto options = std::make_shared<CopyOptions>();
  CLI::App* const app = root.add_subcommand("convert", "write a recording or a ring in another format");
  app->footer(convert_footer);
  add_input_options(*app, *options);
  add_recording_options(*app, options->output);
  app->get_option("--output")
      ->description("the file to write, or - for stdout; FILE.gz is compressed")
      ->type_name("FILE")
      ->expected(1)
      ->required();
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return copy(*options, invocation, Format::fxt); }};
}

}  // namespace rtev::cli
