// SPDX-License-Identifier: MIT
// Cost by number of processes, domains, threads and binaries, by rate, and by length of the run.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/idle_fleet.hpp"
#include "bench/load.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/recorded.hpp"
#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

/// One value of what grows, and the cost that was measured there.
struct Point {
  double x;
  Fleet::Size size{};
  double events_per_second = 0;
  Series cost{.name = "rtev-bpf", .runs = {}};
  std::uint64_t written = 0;  ///< events
  std::uint64_t lost_words = 0;
};

/// Adds a row for each point, and the curve.
void add(Report& report, const std::string& title, const std::string& unit, const std::vector<Point>& points,
         const std::string& note) {
  Curve curve{.title = title, .unit = unit, .points = {}};
  for (const Point& point : points) {
    curve.points.emplace_back(point.x, std::max(point.cost.median(), 1e-3));
    Row row{.section = "growth",
            .what = fmt::format("{}: {:.12g}", title, point.x),
            .unit = unit,
            .subject = point.cost,
            .note = note};
    if (point.written > 0) {
      row.note += fmt::format("; {} events, {}", point.written,
                              point.lost_words == 0 ? "none lost" : fmt::format("{} words lost", point.lost_words));
    }
    report.add(std::move(row));
  }
  report.add(std::move(curve));
}

/// Cpu time of `record` while a fleet writes, an event; with sleepers, a wake-up of theirs.
void measure(Point& point, double seconds) {
  // The start is over by then, and so is the time for which events may stay in their rings.
  constexpr std::chrono::milliseconds rest{500};
  const bool by_wakes = point.size.sleepers > 0;
  // Counts only these processes, in case others on this host write events.
  const test::TempDir directory;
  const std::string file = directory / "trace.fxt";
  std::vector<std::string> arguments{"record", "-q", "-n", Fleet::name, "-o", file};
  if (!by_wakes) arguments.insert(arguments.end(), {"--sched", "off"});
  Fleet fleet(point.size);
  Tool tool(arguments);
  std::this_thread::sleep_for(rest);
  const std::uint64_t cpu = tool.tree_cpu_ns();
  const Fleet::Done done = fleet.write(point.events_per_second, seconds);
  std::this_thread::sleep_for(rest);
  const auto spent = static_cast<double>(tool.tree_cpu_ns() - cpu);
  point.cost.runs.push_back(spent /
                            static_cast<double>(std::max<std::uint64_t>(by_wakes ? done.wakes : done.events, 1)));
  point.written += done.events;
  tool.interrupt();
  point.lost_words += recorded_in(file).lost_words;
}

void measure(std::vector<Point>& points, const Effort& effort) {
  const double seconds = effort.seconds < 1 ? effort.seconds : 1.5 * effort.seconds;
  for (int round = 0; round < std::max(1, effort.rounds / 3); ++round) {
    for (Point& point : points) measure(point, seconds);
  }
}

void by_processes(Report& report, const Effort& effort) {
  std::vector<Point> points;
  for (const std::uint32_t count : {1u, 10u, 100u, 500u})
    points.push_back({.x = static_cast<double>(count), .size = {.processes = count}, .events_per_second = 1e6});
  measure(points, effort);
  const std::string title = "processes, 1M events/s in all";
  add(report, title, "ns/event", points, "cpu of all threads and helpers, `record`");
  report.add(
      {.section = "growth",
       .what = title,
       .unit = "x",
       .subject = {.name = "500 against 1", .runs = {points.back().cost.median() / points.front().cost.median()}},
       .goal = Goal::at_most(2, "x"),
       .note = "of the medians"});
}

void by_domains(Report& report, const Effort& effort) {
  std::vector<Point> points;
  for (const std::uint32_t count : {1u, 4u, 16u, 64u, 128u})
    points.push_back({.x = static_cast<double>(count), .size = {.domains = count}, .events_per_second = 1e6});
  measure(points, effort);
  add(report, "domains of a process, 1M events/s in all", "ns/event", points,
      "cpu of all threads and helpers, `record`");
}

void by_rate(Report& report, const Effort& effort) {
  std::vector<Point> points;
  for (const double rate : {1e3, 10e3, 100e3, 1e6, 5e6, 20e6}) points.push_back({.x = rate, .events_per_second = rate});
  measure(points, effort);
  add(report, "events/s of one domain", "ns/event", points,
      "cpu of all threads and helpers, `record`; looking at a ring has a cost, so few events are dear");
}

void by_threads(Report& report, const Effort& effort) {
  std::vector<Point> points;
  for (const std::uint32_t count : {1u, 10u, 100u, 1000u})
    points.push_back({.x = static_cast<double>(count), .size = {.sleepers = count}, .events_per_second = 1e3});
  measure(points, effort);
  add(report, "threads, 5,000 wake-ups/s in all", "ns/wake-up", points,
      "of a process with few events; with scheduler events: a wake-up and two switches each");
}

void by_binaries(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  const test::TempDir directory;
  std::deque<test::Process> programs;
  std::vector<Point> points;
  for (const unsigned count : {1u, 10u, 50u}) {
    while (programs.size() < count) {
      test::Command command = ocaml_program("busy_alloc", directory.path());
      const auto copy = directory / fmt::format("program{}", programs.size());
      std::filesystem::copy_file(command.argv[0], copy);
      command.argv[0] = copy.string();
      programs.emplace_back(command, "ready");
    }
    Point point{.x = static_cast<double>(count)};
    for (int round = 0; round < effort.rounds; ++round) {
      Tool tool({"-o", "/dev/null"});
      point.cost.runs.push_back(static_cast<double>(tool.tree_cpu_ns()) / 1e6);
      tool.interrupt();
    }
    points.push_back(std::move(point));
  }
  add(report, "binaries, start to ready", "ms of cpu", points,
      "different files of running OCaml programs to inspect and probe");
}

double resident_mb(pid_t pid) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) * 1024 / 1e6;
  }
  return 0;
}

/// One run of `record`, looked at several times: its cost since the last look, and its memory.
void by_length(Report& report, const Effort& effort) {
  constexpr double events_per_second = 1e6;
  const std::vector<double> lengths =
      effort.seconds < 1 ? std::vector<double>{1, 3} : std::vector<double>{1, 3, 10, 30};
  const test::TempDir directory;
  Load load({"-r", "1M", "--clock", "cached", "-m", "gc=8,counters=2"});
  Tool tool({"record", "-q", "-n", Load::name, "-o", directory / "trace.fxt"});
  load.go();
  const std::uint64_t start = monotonic_ns();
  std::uint64_t cpu = tool.tree_cpu_ns(), from = start;
  std::vector<Point> cost, memory;
  for (const double length : lengths) {
    const auto passed = std::chrono::nanoseconds(monotonic_ns() - start);
    std::this_thread::sleep_for(std::chrono::duration<double>(length) - passed);
    const std::uint64_t now = monotonic_ns(), cpu_now = tool.tree_cpu_ns();
    const double events = events_per_second * static_cast<double>(now - std::exchange(from, now)) / 1e9;
    const double spent = static_cast<double>(cpu_now - std::exchange(cpu, cpu_now));
    cost.push_back({.x = length, .cost = {.name = "record", .runs = {spent / events}}});
    memory.push_back({.x = length, .cost = {.name = "record", .runs = {resident_mb(tool.process().pid())}}});
  }
  load.interrupt();
  tool.interrupt();
  add(report, "seconds of a recording, 1M events/s", "ns/event", cost,
      "since the row before; scheduler events included");
  add(report, "memory after seconds of a recording", "MB", memory, "its own (RssAnon)");
}

}  // namespace

void growth(Report& report, const Effort& effort) {
  by_processes(report, effort);
  by_domains(report, effort);
  by_rate(report, effort);
  by_threads(report, effort);
  by_binaries(report, effort);
  by_length(report, effort);
}

}  // namespace rtev::bench
