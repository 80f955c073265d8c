// SPDX-License-Identifier: MIT
// rtev-bpf stats: what the garbage collector did, by process and domain.
#include "analysis/stats/stats_sink.hpp"
#include "cli/analysis_command.hpp"
#include "cli/stream.hpp"
#include "inspect/procfs.hpp"

namespace rtev::cli {

int run_stats(const Options& options) {
  auto output = open_output(options);
  if (!output) return report(output.error());
  StatsOptions stats_options;
  if (options.target.empty())
    stats_options.max_rss_bytes = [procfs = Procfs()](std::int32_t pid) { return procfs.max_rss_bytes(pid); };
  Stats stats(std::move(stats_options));
  return analyse(options, stats, **output, [&](const Registry& registry) {
    return options.json_report ? stats.report_json(registry) : stats.report_text(registry);
  });
}

}  // namespace rtev::cli
