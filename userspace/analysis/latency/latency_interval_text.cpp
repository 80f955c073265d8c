// SPDX-License-Identifier: MIT
// A line for each interval and process, as vmstat prints them.
#include <algorithm>
#include <string>

#include "analysis/latency/latency_figures.hpp"
#include "analysis/report_text.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_processes = 10;
constexpr std::string_view time_of_day = "14:03:22";

/// When the interval ended: the time of day, or seconds since the run began.
std::string end_of(const LatencyReport& report) {
  TextBuffer time;
  if (report.run_realtime_ns != 0) {
    add_time_of_day(time, report.run_realtime_ns + (report.end_ns - report.run_ns));
    return std::string{time.text().substr(0, time_of_day.size())};
  }
  return fmt::format("{:.1f}", static_cast<double>(report.end_ns - report.run_ns) / 1e9);
}

std::string percentile(const Histogram& wall, double of) {
  const auto ns = wall.known_percentile(of);
  return ns ? fmt::format("{}", Duration{*ns}) : "-";
}

}  // namespace

std::string latency_interval_text(const LatencyReport& report, bool with_titles) {
  TextBuffer out;
  if (with_titles) {
    print(out, "{:<8} {:>8} {:<15} {:>9} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>6}\n", "TIME", "PID", "COMM", "COUNT",
          "TOTAL", "P50", "P99", "MAX", "ONCPU", "RUNBL", "BLOCK");
  }
  const std::string time = end_of(report);
  for (std::size_t i = 0; i < std::min(report.processes.size(), max_processes); ++i) {
    const LatencyReport::Process& process = report.processes[i];
    const Histogram& wall = process.figures.wall;
    const TimeSplit& split = process.figures.split;
    print(out, "{:<8} {:>8} {:<15} {:>9} {:>8} {:>8} {:>8} {:>8}", time, process.pid, escaped(process.comm),
          Grouped{wall.count()}, Duration{wall.total()}, percentile(wall, 50), percentile(wall, 99),
          Duration{wall.max()});
    for (const std::uint64_t ns : {split.on_cpu, split.runnable, split.blocked()}) {
      const auto [share, is_bound] = known_share(ns, wall.total(), split.unknown);
      print(out, " {:>6}", report.scheduler_seen ? share + (is_bound ? "+" : "") : "-");
    }
    out.add(process.figures.lower_bound() ? " !\n" : "\n");
  }
  if (report.processes.size() > max_processes) {
    print(out, "{:<8} and {} with less time\n", time,
          Counted{report.processes.size() - max_processes, "more process", "more processes"});
  }
  if (report.processes.empty()) print(out, "{:<8} {:>8} no {}\n", time, "-", report.phase.empty() ? "pauses" : "spans");
  return std::string{out.text()};
}

}  // namespace rtev
