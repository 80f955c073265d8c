// SPDX-License-Identifier: MIT
// rtev-bpf latency: how long the pauses of OCaml programs are.
#include "analysis/latency/latency_sink.hpp"
#include "base/escape.hpp"
#include "cli/analysis_command.hpp"
#include "cli/stream.hpp"

namespace rtev::cli {

int run_latency(const Options& options) {
  if (!options.phase.empty() && !is_phase_name(options.phase)) {
    report({.what = "there is no phase",
            .subject = escaped(options.phase),
            .hint = "names are those of the stream's begin events, e.g. minor, major_slice, stw_leader"});
    return exit_usage;
  }
  auto output = open_output(options);
  if (!output) return report(output.error());
  Latency latency({.format = options.json_report ? LatencyOptions::Format::json : LatencyOptions::Format::text,
                   .rule = options.olly_pauses ? PauseRule::olly : PauseRule::outermost,
                   .phase = options.phase,
                   .min_ns = static_cast<std::uint64_t>(options.min.count()),
                   .interval_ns = static_cast<std::uint64_t>(options.interval.count()),
                   .full = options.all_percentiles},
                  **output);
  // It writes its reports by itself.
  return analyse(options, latency, **output, [](const Registry&) { return std::string(); });
}

}  // namespace rtev::cli
