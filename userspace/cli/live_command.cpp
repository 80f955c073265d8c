// SPDX-License-Identifier: MIT
// rtev-bpf without a subcommand: the live stream of the host, or of a command.
#include <fmt/core.h>

#include <cstdio>

#include "cli/stream.hpp"
#include "cli/tracing.hpp"
#include "formats/text/run_summary.hpp"

namespace rtev::cli {

int run_live(const Options& options) {
  auto stream = Stream::open(options, Format::text);
  if (!stream) return report(stream.error());
  const auto conclude = [&](const RunSummary& summary, const Registry& registry) {
    if (!options.quiet) fmt::print(stderr, "{}", summary_text(summary, registry));
  };
  const int status =
      trace(options, {.sink = stream->sink(), .output = stream->output(), .owns_stdout = false, .conclude = conclude});
  return finish_output(stream->output(), status);
}

}  // namespace rtev::cli
