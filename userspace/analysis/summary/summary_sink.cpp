// SPDX-License-Identifier: MIT
#include "analysis/summary/summary_sink.hpp"

#include <array>

namespace rtev {

Summary::Summary(const SummaryOptions& options)
    : full_(options.full),
      stats_({.max_bytes = options.max_bytes / 8, .full = options.full, .by_process = options.by_process}),
      latency_({.full = options.full, .by_process = options.by_process, .max_bytes = options.max_bytes / 2}, nowhere_),
      pauses_({.full = options.full, .input = options.input, .max_bytes = options.max_bytes / 8}) {}

void Summary::header(const RunHeader& header) {
  for (Sink* const part : std::array<Sink*, 3>{&stats_, &latency_, &pauses_}) part->header(header);
}

void Summary::consume(const Batch& batch, const Registry& registry) {
  for (Sink* const part : std::array<Sink*, 3>{&stats_, &latency_, &pauses_}) part->consume(batch, registry);
}

void Summary::summary(const RunSummary& summary, const Registry& registry) {
  for (Sink* const part : std::array<Sink*, 3>{&stats_, &latency_, &pauses_}) part->summary(summary, registry);
}

std::string Summary::report_text(const Registry& registry) {
  if (full_) return stats_.report_text(registry) + "\n" + latency_.report_text(registry) + "\n" + pauses_.report_text();
  PausesReport pauses = pauses_.report();
  // The sentences of stats say which programs were not read.
  if (pauses.read_programs.is_none() && pauses.counts.pauses == 0) return stats_sentences(stats_.report(registry));
  pauses.read_programs = {};
  pauses.max_groups = 2;
  pauses.max_worst = 1;
  std::string text = stats_sentences(stats_.report(registry)) + "\n";
  // Else both say that there are none.
  LatencyReport latency = latency_.report(registry);
  // There is no room on the screen.
  latency.utilization.clear();
  pauses.utilization.clear();
  if (pauses.counts.pauses > 0) text += latency_sentences(latency) + "\n";
  return text + rtev::report_text(pauses);
}

std::string Summary::report_json(const Registry& registry) {
  return stats_.report_json(registry) + latency_.report_json(registry) + pauses_.report_json();
}

}  // namespace rtev
