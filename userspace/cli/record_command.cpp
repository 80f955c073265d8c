// SPDX-License-Identifier: MIT
// rtev-bpf record: writes the stream to a file, to analyse it later or to open it in a viewer.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/units.hpp"
#include "cli/messages.hpp"
#include "cli/progress.hpp"
#include "cli/stream.hpp"
#include "cli/subcommands.hpp"
#include "cli/tracing.hpp"
#include "formats/text/run_summary.hpp"

namespace rtev::cli {
namespace {

constexpr const char* footer =
    "An fxt file is a recording: rtev-bpf dump shows it, rtev-bpf convert makes the other formats of it, and latency, "
    "pauses and stats analyse it with -i. The other formats are exports, which rtev-bpf does not read. fxt, json and "
    "pftrace files open in https://ui.perfetto.dev: a group per process, a row per thread with its GC spans and what "
    "the "
    "scheduler did to it. At any time FILE is complete except for the last second, even if rtev-bpf is killed.";

struct RecordOptions : TraceOptions {
  OutputOptions output;
};

int run_record(const RecordOptions& options, const Invocation& invocation) {
  auto stream = Stream::open(options.output, Format::fxt);
  if (!stream) return report(stream.error());
  if (!options.quiet && ::isatty(STDERR_FILENO) == 1)
    stream->add(std::make_unique<Progress>(stream->sink(), STDERR_FILENO, [&] { return stream->written(); }));
  // Reported before the wait for CMD, which may run for days.
  int failed = exit_ok;
  const auto conclude = [&](const RunSummary& summary, const Registry& registry) {
    if (!options.quiet) fmt::print(stderr, "{}", summary_text(summary, registry));
    const auto& error = stream->output().error();
    if (error) failed = report(*error);
    if (options.quiet) return;
    TextBuffer size;
    add_size(size, stream->written());
    fmt::print(stderr, "{} {}, {}: {}\n", error ? "wrote only a part of" : "wrote", escaped(stream->name()),
               size.text(), info_of(stream->format()).hint);
  };
  const int status = trace(
      options, invocation,
      {.sink = stream->sink(), .output = stream->output(), .owns_stdout = stream->is_stdout(), .conclude = conclude});
  // An incomplete recording is a failure, even if only the reader of a pipe went away.
  return failed != exit_ok ? failed : status;
}

}  // namespace

Subcommand add_record_command(CLI::App& root) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* const app = root.add_subcommand("record", "write the stream to a file, to view or analyse later");
  app->footer(footer);
  add_process_options(*app, *options);
  add_recording_options(*app, options->output);
  add_trace_options(*app, *options);
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_record(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
