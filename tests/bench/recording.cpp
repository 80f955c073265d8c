// SPDX-License-Identifier: MIT
// rtev-bpf record with default options: events per CPU second from ring to file, bytes per event, and losses.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/producer.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

constexpr int producer_cpu = 0, our_cpu = 1;
constexpr unsigned default_log2_words = 16;  // OCAMLRUNPARAM e=16

/// What the tracer's summary of the run says, which is the same for all formats.
struct Summary {
  double events = 0, lost_words = 0;
};

/// A number with commas between thousands.
double number(std::string text) {
  std::erase(text, ',');
  return std::stod(text);
}

/// Finds "N events of ..." and "PID COMM RUNTIME DOM EVENTS WORDS LOST ...".
Summary summary_in(const std::string& text, pid_t pid) {
  Summary summary;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> columns{std::istream_iterator<std::string>(words), {}};
    if (columns.size() > 2 && columns[1] == "events" && columns[2] == "of") summary.events = number(columns[0]);
    if (columns.size() > 6 && columns[0] == std::to_string(pid)) summary.lost_words = number(columns[6]);
  }
  if (summary.events == 0) throw std::runtime_error("no summary of a run: " + text);
  return summary;
}

struct Cost {
  double events_per_cpu_second, bytes_per_event, lost_percent;
};

Cost record(const std::string& ending, Mix mix, double events_per_second, double seconds) {
  const test::TempDir directory;
  const std::string file = directory / ("trace" + ending);
  Ring ring(default_log2_words);
  Tool tool({"record", "-p", std::to_string(::getpid()), "-o", file}, our_cpu);
  const std::uint64_t start = tool.tree_cpu_ns();
  Produced produced;
  {
    const CpuBinding binding(producer_cpu);
    produced = produce_for(ring, mix, events_per_second, seconds);
  }
  // Events held back for ordering are output within moments.
  ::usleep(200'000);
  const double cpu_ns = static_cast<double>(tool.tree_cpu_ns() - start);
  const Summary summary = summary_in(tool.interrupt().err, ::getpid());
  return {.events_per_cpu_second = summary.events * 1e3 / cpu_ns,
          .bytes_per_event = static_cast<double>(std::filesystem::file_size(file)) / summary.events,
          .lost_percent = summary.lost_words * 100 / static_cast<double>(produced.words)};
}

}  // namespace

void recording(Report& report, const Effort& effort) {
  struct Target {
    std::string ending;
    Mix mix;
    double events_per_second;
    double min_millions = 0;  ///< events a second of cpu time, the goal; 0: none
    std::vector<Cost> runs{};
  };
  std::vector<Target> settings{{".fxt", Mix::user, 5e6, 30}, {".fxt", Mix::runtime, 5e6, 30},
                               {".fxt.gz", Mix::user, 1e6},  {".pftrace", Mix::user, 1e6, 8},
                               {".json", Mix::user, 1e6, 6}, {".jsonl", Mix::user, 1e6}};
  for (int round = 0; round < std::min(effort.rounds, 5); ++round) {
    for (Target& setting : settings)
      setting.runs.push_back(record(setting.ending, setting.mix, setting.events_per_second, 3 * effort.seconds));
  }
  for (const Target& setting : settings) {
    const std::string what =
        fmt::format("{} at {:g} M/s to {}", name_of(setting.mix), setting.events_per_second / 1e6, setting.ending);
    const auto series = [&](double Cost::* figure) {
      Series values{.name = "rtev-bpf record", .runs = {}};
      for (const Cost& run : setting.runs) values.runs.push_back(run.*figure);
      return values;
    };
    Row rate{.section = "recording",
             .what = what,
             .unit = "M events/CPU s",
             .subject = series(&Cost::events_per_cpu_second),
             .note = fmt::format(
                 "all its threads and helpers, scheduler events, polling, sleeping and write(2) included; {:.1f} "
                 "bytes an event",
                 series(&Cost::bytes_per_event).median())};
    Row lost{.section = "recording", .what = what + ": lost", .unit = "%", .subject = series(&Cost::lost_percent)};
    if (setting.min_millions > 0) rate.goal = Goal::at_least(setting.min_millions, "M");
    if (setting.events_per_second == 5e6) {
      lost.goal = Goal::at_most(0, "%");
      lost.note = "default settings, a ring of 2^16 words";
    }
    report.add(std::move(rate));
    report.add(std::move(lost));
  }
}

}  // namespace rtev::bench
