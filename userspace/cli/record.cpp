// SPDX-License-Identifier: MIT
// rtev-bpf record: the stream as a file for viewers, complete enough to be analysed later.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/escape.hpp"
#include "base/units.hpp"
#include "cli/progress.hpp"
#include "cli/stream.hpp"
#include "cli/tracing.hpp"
#include "formats/text/run_summary.hpp"

namespace rtev::cli {

int run_record(const Options& options) {
  auto stream = Stream::open(options, Format::fxt);
  if (!stream) return report(stream.error());
  if (!options.quiet && ::isatty(STDERR_FILENO) == 1)
    stream->add(std::make_unique<Progress>(stream->sink(), STDERR_FILENO, [&] { return stream->written(); }));
  // Told at once: a command that is traced may go on for days.
  int broken_off = exit_ok;
  const auto conclude = [&](const RunSummary& summary, const Registry& registry) {
    if (!options.quiet) fmt::print(stderr, "{}", summary_text(summary, registry));
    const auto& error = stream->output().error();
    if (error) broken_off = report(*error);
    if (options.quiet) return;
    TextBuffer size;
    add_size(size, stream->written());
    fmt::print(stderr, "{} {}, {}: {}\n", error ? "kept what was written of" : "wrote", escaped(stream->name()),
               size.text(), info_of(stream->format()).hint);
  };
  const int status = trace(
      options,
      {.sink = stream->sink(), .output = stream->output(), .owns_stdout = stream->is_stdout(), .conclude = conclude});
  // A recording that breaks off is a failure, whoever hung up.
  return broken_off != exit_ok ? broken_off : status;
}

}  // namespace rtev::cli
