// SPDX-License-Identifier: MIT
// rtev-bpf pauses: the worst pauses, each taken apart, and what is to blame.
#include "analysis/pauses/pauses_sink.hpp"
#include "cli/analysis_command.hpp"
#include "cli/stream.hpp"

namespace rtev::cli {

int run_pauses(const Options& options) {
  auto output = open_output(options);
  if (!output) return report(output.error());
  Pauses pauses({.top = options.top, .min_ns = static_cast<std::uint64_t>(options.min.count())});
  return analyse(options, pauses, **output,
                 [&](const Registry&) { return options.json_report ? pauses.report_json() : pauses.report_text(); });
}

}  // namespace rtev::cli
