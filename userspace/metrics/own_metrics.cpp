// SPDX-License-Identifier: MIT
#include "metrics/own_metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <string_view>

#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "base/restarts.hpp"

namespace rtev {
namespace {

std::int64_t ns_of(const timeval& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1'000;
}

/// Pages in memory: the second number of the file.
std::int64_t resident_pages() {
  const std::string text = read_small_file("/proc/self/statm", 256).value_or(std::string{});
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) return 0;
  return parse_leading_number<std::int64_t>(std::string_view(text).substr(blank + 1)).value_or(0);
}

std::int64_t open_files() {
  std::int64_t count = 0;
  visit_names("/proc/self/fd", [&count](std::string_view) { return ++count > 0; });
  return count;
}

}  // namespace

void add_own_metrics(MetricVisitor& visitor, const RunHeader& run) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto add = [&](std::string_view name, std::string_view unit, std::string_view help, MetricType type,
                       std::int64_t amount) {
    visitor.family({.name = name, .unit = unit, .help = help, .type = type});
    visitor.value({}, amount);
  };
  visitor.family({.name = "rtev_bpf_restarts",
                  .unit = "",
                  .help = "Processes of the agent that ended or hung, and were replaced, by part."});
  for (std::size_t part = 0; part < part_count; ++part) {
    const MetricLabel label[]{{"part", to_string(static_cast<Part>(part))}};
    visitor.value(label, static_cast<std::int64_t>(restarts_of(static_cast<Part>(part))));
  }
  add("process_cpu", "seconds", "CPU time of the tracer.", MetricType::counter,
      ns_of(used.ru_utime) + ns_of(used.ru_stime));
  add("process_resident_memory", "bytes", "Memory of the tracer.", MetricType::gauge,
      resident_pages() * ::sysconf(_SC_PAGESIZE));
  add("process_open_fds", "", "Open descriptors of the tracer.", MetricType::gauge, open_files());
  add("process_start_time", "seconds", "Start of the run since the epoch.", MetricType::gauge,
      static_cast<std::int64_t>(run.start_realtime_ns));
}

}  // namespace rtev
