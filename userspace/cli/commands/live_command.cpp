// SPDX-License-Identifier: MIT
// rtev-bpf without a subcommand: the live stream of the host, or of a program that it starts.
#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/summary/summary_sink.hpp"
#include "base/exit_status.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "cli/stream_writer.hpp"
#include "cli/tracing.hpp"

namespace rtev::cli {
namespace {

constexpr const char* live_footer =
    "OCaml programs write runtime events if they are started with OCAML_RUNTIME_EVENTS_START=1 in their environment or "
    "call Runtime_events.start (). \"rtev-bpf -- CMD\" starts CMD with events on and traces it and its descendants.\n"
    "\n"
    "Tracing needs root: rtev-bpf doctor checks this host. Reading recordings does not.\n"
    "\n"
    "Events go to stdout, messages and the summary to stderr; the stdout of CMD, too, if stdout is no terminal. At the "
    "first Ctrl-C rtev-bpf reads the events that are "
    "left and prints the summary; at the second it exits at once. It forwards the signals INT, TERM, HUP, QUIT, USR1 "
    "and USR2 to CMD. -d ends the trace, but not CMD: rtev-bpf waits for it.\n"
    "\n"
    "Exit status: that of CMD, if there is one; else 0, 1 after an error or if -p or -n selected no process, 2 if the "
    "command line is wrong, or 3 if a limit was exceeded or nothing was measured for it (--fail-if).\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf                            trace every OCaml process until Ctrl-C\n"
    "  rtev-bpf -p 1234 -d 5s              trace one process for five seconds\n"
    "  rtev-bpf top                        watch all OCaml processes, a row for each\n"
    "  rtev-bpf -- ./server --port 80      start a program with events on and trace it\n"
    "  rtev-bpf record -d 5s -o trace.fxt  record, to view in ui.perfetto.dev or analyse later\n"
    "  rtev-bpf pauses -d 10s              find the longest pauses and their causes";

/// Passes a stream on, and prints what `rtev-bpf summary` says of it at its end.
class WithSummary final : public ForwardingSink {
 public:
  WithSummary(Sink& sink, std::size_t max_bytes) : ForwardingSink(sink), summary_({.max_bytes = max_bytes}) {}

  void header(const RunHeader& header) override {
    sink_.header(header);
    summary_.header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    sink_.consume(batch, registry);
    summary_.consume(batch, registry);
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    sink_.summary(summary, registry);
    sink_.flush();
    summary_.summary(summary, registry);
    say("\n" + summary_.report_text(registry));
  }

 private:
  Summary summary_;
};

int run_live(const StreamOptions& options, const Invocation& invocation) {
  auto writer = StreamWriter::open(options.output, format_for_people(options.output));
  if (!writer) return report(writer.error());
  // Of a program that was started for it the reader wants to know at the end how it did.
  const bool is_brief = writer->format() == Format::brief;
  if (!options.quiet && is_brief && !invocation.command.empty())
    writer->add(std::make_unique<WithSummary>(writer->sink(), options.memory_limit / 4));
  if (!options.quiet) {
    say(mistyped_kind_note(options.output.events));
    writer->add(std::make_unique<AtEnd>(writer->sink(), [&](const RunSummary& summary, const Registry& registry) {
      writer->print_summary(summary, registry, options.verbose, writer->facts());
    }));
  }
  const auto is_full = [&] { return writer->files().has_to_end(); };
  const int status = trace(options, invocation,
                           {.sink = writer->sink(),
                            .output = writer->output(),
                            .owns_stdout = is_data_on_stdout(writer->file()),
                            .max_delay = writer->max_delay(),
                            .is_full = is_full,
                            .shows_services = writer->shows_services()});
  const int failed = report_full(*writer);
  return finish_output(writer->output(), failed != exit_ok ? failed : status);
}

}  // namespace

Subcommand add_live_command(CLI::App& root) {
  auto options = std::make_shared<StreamOptions>();
  root.footer(live_footer);
  add_process_options(root, *options);
  add_output_options(root, options->output);
  add_disk_options(root, options->output.disk, false);
  add_trace_options(root, *options);
  add_common_options(root, *options);
  root.get_option("--verbose")
      ->description(
          "also print all functions of stacks, messages of libbpf, and at the end what was read of each process");
  return {.app = &root,
          .run =
              [options](const Invocation& invocation) {
                options->output.all_frames = options->verbose;
                return run_live(*options, invocation);
              },
          .takes_command = true};
}

}  // namespace rtev::cli
