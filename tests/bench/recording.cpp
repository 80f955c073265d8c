// SPDX-License-Identifier: MIT
// rtev-bpf record with default options: events per CPU second from ring to file, bytes per event, and losses.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/producer.hpp"
#include "bench/recorded.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

constexpr int producer_cpu = 0, our_cpu = 1;
constexpr unsigned default_log2_words = 16;  // OCAMLRUNPARAM e=16

struct Cost {
  double events_per_cpu_second, bytes_per_event, lost_percent;
};

Cost record(const std::string& ending, Mix mix, double events_per_second, double seconds) {
  const test::TempDir directory;
  const std::string file = directory / ("trace" + ending);
  Ring ring(default_log2_words);
  Tool tool({"record", "-q", "-p", std::to_string(::getpid()), "-o", file}, our_cpu);
  const std::uint64_t start = tool.cpu_ns();
  Produced produced;
  {
    const CpuBinding binding(producer_cpu);
    produced = produce_for(ring, mix, events_per_second, seconds);
  }
  // Events held back for ordering are output within moments.
  ::usleep(200'000);
  const double cpu_ns = static_cast<double>(tool.cpu_ns() - start);
  tool.interrupt();
  const Recorded recorded = recorded_in(file);
  const double events = static_cast<double>(recorded.events + recorded.others);
  return {.events_per_cpu_second = events * 1e3 / cpu_ns,
          .bytes_per_event = static_cast<double>(std::filesystem::file_size(file)) / events,
          .lost_percent = static_cast<double>(recorded.lost_words) * 100 / static_cast<double>(produced.words)};
}

}  // namespace

void recording(Report& report, const Effort& effort) {
  struct Target {
    std::string ending;
    Mix mix;
    double events_per_second;
    std::vector<Cost> runs{};
  };
  std::vector<Target> settings{{".fxt", Mix::user, 5e6},     {".fxt", Mix::runtime, 5e6}, {".fxt.gz", Mix::user, 1e6},
                               {".pftrace", Mix::user, 1e6}, {".json", Mix::user, 1e6},   {".jsonl", Mix::user, 1e6}};
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
    const bool is_the_goal = setting.ending == ".fxt" && setting.mix == Mix::user;
    Row rate{.section = "recording",
             .what = what,
             .unit = "M events/CPU s",
             .subject = series(&Cost::events_per_cpu_second),
             .note = fmt::format("all its threads, scheduler events, polling, sleeping and write(2) included; {:.1f} "
                                 "bytes an event",
                                 series(&Cost::bytes_per_event).median())};
    Row lost{.section = "recording", .what = what + ": lost", .unit = "%", .subject = series(&Cost::lost_percent)};
    if (is_the_goal) {
      rate.goal = Goal::at_least(20, "M");
      lost.goal = Goal::at_most(0, "%");
      lost.note = "default settings, a ring of 2^16 words";
    }
    report.add(std::move(rate));
    report.add(std::move(lost));
  }
}

}  // namespace rtev::bench
