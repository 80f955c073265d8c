// SPDX-License-Identifier: MIT
// Cost of tracing for a busy OCaml program.
#include <fmt/core.h>

#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

struct Cost {
  double wall_ms;
  double cpu_ms;
};

/// Fixed amount of work: minor collections until the program says that it is done.
Cost run_program(int domains, int work) {
  // By then the tracer has inspected the program and is idle.
  constexpr std::chrono::milliseconds settling{200};
  const test::TempDir directory;
  test::Process program(ocaml_program("domains", directory.path(), {std::to_string(domains), std::to_string(work)}));
  program.lines_until("ready");
  std::this_thread::sleep_for(settling);
  const std::uint64_t cpu = total_cpu_ns(program.pid()), start = monotonic_ns();
  program.go();
  program.lines_until("done");
  const Cost cost{.wall_ms = static_cast<double>(monotonic_ns() - start) / 1e6,
                  .cpu_ms = static_cast<double>(total_cpu_ns(program.pid()) - cpu) / 1e6};
  program.go();
  program.wait();
  return cost;
}

/// An amount of work that takes about this long here.
int calibrate(int domains, double seconds) {
  constexpr int probe = 40;
  run_program(domains, probe);
  const double ms = run_program(domains, probe).wall_ms;
  return std::max(probe, static_cast<int>(std::lround(probe * seconds * 1000 / ms)));
}

const std::array<Setting, 3> settings{{{"untraced", std::nullopt},
                                       {"--sched off", std::vector<std::string>{"-o", "/dev/null", "--sched", "off"}},
                                       {"with scheduler events", std::vector<std::string>{"-o", "/dev/null"}}}};
constexpr std::array<double, 3> max_percent{0, 1, 3};

struct Measured {
  Series wall, cpu;
};

void measure(Report& report, int domains, const Effort& effort) {
  const double seconds = effort.seconds < 1 ? effort.seconds : 1.5 * effort.seconds;
  const int work = calibrate(domains, seconds);
  std::array<Measured, 3> measured;
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i].wall.name = measured[i].cpu.name = settings[i].name;
  in_turns(effort.rounds, measured.size(), [&](std::size_t i) {
    std::optional<Tool> tool;
    if (settings[i].tool) tool.emplace(*settings[i].tool);
    const Cost cost = run_program(domains, work);
    measured[i].wall.runs.push_back(cost.wall_ms);
    measured[i].cpu.runs.push_back(cost.cpu_ms);
    if (tool) tool->interrupt();
  });
  const auto slower = [](const Series& traced, const Series& untraced) {
    return (traced.median() / untraced.median() - 1) * 100;
  };
  const std::string program = fmt::format("busy OCaml, {} domain{}", domains, domains == 1 ? "" : "s");
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const std::string how = fmt::format("{}, {}", program, settings[i].name);
    const Goal goal = Goal::at_most(max_percent[i], "% slower");
    const auto row = [&](const char* what, Series Measured::* series, const char* note) {
      const Series& traced = measured[i].*series;
      const Series& untraced = measured[0].*series;
      report.add({.section = "overhead",
                  .what = how + ": " + what,
                  .unit = "ms",
                  .subject = traced,
                  .peer = untraced,
                  .goal = goal,
                  .figure = slower(traced, untraced),
                  .note = fmt::format("{}; of the untraced runs the slowest is {:.1f} % over the fastest", note,
                                      (untraced.greatest() / untraced.least() - 1) * 100)});
    };
    row("run time", &Measured::wall,
        domains == 1 ? "the tracer may have a core of its own" : "the tracer needs time on cores that are all taken");
    row("its cpu time", &Measured::cpu, "all threads of the program, with what it does in the kernel");
  }
}

}  // namespace

void overhead(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  for (const int domains : {1, 2}) measure(report, domains, effort);
}

}  // namespace rtev::bench
