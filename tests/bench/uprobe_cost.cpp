// SPDX-License-Identifier: MIT
// Cost of tracing an OCaml program without a ring, compared with the cost of a ring.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

/// A program of tests/ocaml that does a given amount of work between two gates.
struct Program {
  const char* what;
  const char* name;
  std::vector<std::string> arguments;  ///< without the last one, the amount of work
  const char* done;                    ///< printed after the work
  int probe;                           ///< an amount that is enough to measure
};

struct Run {
  double cpu_ms;  ///< of the program, including the kernel's work for its probes
  double events;  ///< delivered events, plus lost ones if there is a ring; 0 if untraced
};

Run run_program(const Program& program, int work, const Setting& setting, bool ring) {
  const test::TempDir directory;
  test::Command command = ocaml_program(program.name, directory.path(), program.arguments);
  command.argv.push_back(std::to_string(work));
  if (!ring) command.env.clear();
  test::Process process(command);
  process.lines_until("ready");
  std::optional<Tool> tool;
  if (setting.tool) tool.emplace(with_pid(*setting.tool, process.pid()));
  const std::uint64_t start = total_cpu_ns(process.pid());
  process.go();
  process.lines_until(program.done);
  const double cpu_ms = static_cast<double>(total_cpu_ns(process.pid()) - start) / 1e6;
  double events = 0;
  if (tool) {
    const ToolFigures figures = figures_of(tool->interrupt().out, process.pid());
    const auto written = static_cast<double>(figures.written_words);
    // Lost events are of the same mix as the others.
    events = static_cast<double>(figures.events) *
             (written > 0 ? written / (written - static_cast<double>(figures.lost_words)) : 1);
  }
  process.close_stdin();
  process.wait();
  return {.cpu_ms = cpu_ms, .events = events};
}

const std::array<Setting, 4> settings{
    {{"untraced", std::nullopt},
     {"with a ring", to_nothing()},
     {"--ringless", to_nothing({"--ringless", "--sched", "off"})},
     {"--ringless without limit", to_nothing({"--ringless", "--ringless-limit", "1000000000", "--sched", "off"})}}};
constexpr std::size_t untraced = 0, with_ring = 1;

void measure(Report& report, const Program& program, const Effort& effort) {
  const auto run = [&](int work, std::size_t i) { return run_program(program, work, settings[i], i == with_ring); };
  run(program.probe, untraced);
  const double probe_ms = run(program.probe, untraced).cpu_ms;
  const int work = std::max(
      program.probe, static_cast<int>(std::lround(program.probe * effort.seconds * 1000 / std::max(probe_ms, 0.01))));
  std::array<Series, 4> measured;
  std::array<double, 4> events{};
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i].name = settings[i].name;
  in_turns(effort.rounds, measured.size(), [&](std::size_t i) {
    const auto [cpu_ms, run_events] = run(work, i);
    measured[i].runs.push_back(cpu_ms);
    events[i] += run_events;
  });
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const double median = measured[i].median(), without = measured[untraced].median();
    const double events_a_run = events[i] / effort.rounds;
    report.add({.section = "ringless",
                .what = fmt::format("{}, {}", program.what, settings[i].name),
                .unit = "ms of cpu",
                .subject = measured[i],
                .peer = measured[untraced],
                .note = fmt::format("{:.2f} times as much as untraced; {:.0f} events, {:.2f} µs each", median / without,
                                    events_a_run, (median - without) * 1000 / events_a_run)});
  }
}

}  // namespace

void ringless(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  measure(report, {.what = "busy OCaml, 1 domain", .name = "domains", .arguments = {"1"}, .done = "done", .probe = 40},
          effort);
  // Only collections of an empty minor heap: the highest rate of events possible.
  measure(report,
          {.what = "nothing but collections",
           .name = "ringless",
           .arguments = {"storm"},
           .done = "stormed",
           .probe = 20'000},
          {.rounds = effort.rounds, .seconds = effort.seconds / 50});
}

}  // namespace rtev::bench
