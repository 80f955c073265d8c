// SPDX-License-Identifier: MIT
// Cost of tracing an OCaml program without a ring, compared with the cost of a ring.
#include <fmt/core.h>
#include <time.h>

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

struct Setting {
  const char* name;
  bool ring;
  std::optional<std::vector<std::string>> tool;
};

struct Run {
  double cpu_ms;  ///< of the program, including the kernel's work for its probes
  double events;  ///< delivered events, plus lost ones if there is a ring; 0 if untraced
};

/// CPU time of all threads of a process, including ended ones.
std::uint64_t process_cpu_ns(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    throw std::runtime_error("cannot read the cpu time of the program");
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

Run run_program(const Program& program, int work, const Setting& setting) {
  const test::TempDir directory;
  test::Command command = ocaml_program(program.name, directory.path(), program.arguments);
  command.argv.push_back(std::to_string(work));
  if (!setting.ring) command.env.clear();
  test::Process process(command);
  process.lines_until("ready");
  std::optional<Tool> tool;
  if (setting.tool) {
    std::vector<std::string> arguments = *setting.tool;
    arguments.insert(arguments.end(), {"-p", std::to_string(process.pid())});
    tool.emplace(arguments);
  }
  const std::uint64_t start = process_cpu_ns(process.pid());
  process.go();
  process.lines_until(program.done);
  const double cpu_ms = static_cast<double>(process_cpu_ns(process.pid()) - start) / 1e6;
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

const std::array<Setting, 4>& settings() {
  static const auto with = [](std::vector<std::string> more) {
    std::vector<std::string> all = to_nothing();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  static const std::array<Setting, 4> all{
      {{"untraced", false, std::nullopt},
       {"with a ring", true, to_nothing()},
       {"--ringless", false, with({"--ringless"})},
       {"--ringless without limit", false, with({"--ringless", "--ringless-limit", "1000000000"})}}};
  return all;
}

void measure(Report& report, const Program& program, const Effort& effort) {
  run_program(program, program.probe, settings()[0]);
  const double probe_ms = run_program(program, program.probe, settings()[0]).cpu_ms;
  const int work = std::max(
      program.probe, static_cast<int>(std::lround(program.probe * effort.seconds * 1000 / std::max(probe_ms, 0.01))));
  std::array<Series, 4> measured;
  std::array<double, 4> events{};
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i].name = settings()[i].name;
  for (int round = 0; round < effort.rounds; ++round) {
    for (std::size_t turn = 0; turn < measured.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % measured.size();
      const Run run = run_program(program, work, settings()[i]);
      measured[i].runs.push_back(run.cpu_ms);
      events[i] += run.events;
    }
  }
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const double median = measured[i].median(), untraced = measured[0].median();
    const double events_a_run = events[i] / effort.rounds;
    report.add({.section = "ringless",
                .what = fmt::format("{}, {}", program.what, settings()[i].name),
                .unit = "ms of cpu",
                .subject = measured[i],
                .peer = measured[0],
                .note = fmt::format("{:.2f} times as much as untraced; {:.0f} events, {:.2f} µs each",
                                    median / untraced, events_a_run, (median - untraced) * 1000 / events_a_run)});
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
