// SPDX-License-Identifier: MIT
// The tracer's cpu time at ordinary rates, beside a plain reader of OCaml's own.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/load.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/peer.hpp"
#include "bench/recorded.hpp"
#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

struct Use {
  double percent;  ///< of one core
  std::uint64_t lost_words;
  double scheduler_per_second = 0;  ///< records, if there is a recording of them
};

/// Cpu time over a window in which `cpu_ns` reads it, in percent of one core.
double percent_of_a_core(double seconds, const std::function<std::uint64_t()>& cpu_ns) {
  // What a tracer does once when it starts is not part of what it costs all day.
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 2));
  const std::uint64_t cpu = cpu_ns(), start = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return 100 * static_cast<double>(cpu_ns() - cpu) / static_cast<double>(monotonic_ns() - start);
}

/// A command of the tracer that is left on all day.
struct Command {
  const char* name;
  bool has_scheduler;
  std::function<Use(double seconds)> run;
};

double percent_of(Tool& tool, double seconds) {
  return percent_of_a_core(seconds, [&] { return tool.tree_cpu_ns(); });
}

/// Only the processes of the load, in case others on this host write events.
std::vector<std::string> traced(std::vector<std::string> arguments, bool scheduler) {
  arguments.insert(arguments.end(), {"-n", Load::name});
  if (!scheduler) arguments.insert(arguments.end(), {"--sched", "off"});
  return arguments;
}

Use record(double seconds, bool scheduler) {
  const test::TempDir directory;
  const std::string file = directory / "trace.fxt";
  Tool tool(traced({"record", "-q", "-o", file}, scheduler));
  const double percent = percent_of(tool, seconds);
  tool.interrupt();
  const Recorded recorded = recorded_in(file);
  return {percent, recorded.lost_words, recorded.scheduler_per_second()};
}

Use latency_report(double seconds, bool scheduler) {
  Tool tool(traced({"latency", "-f", "json"}, scheduler));
  const double percent = percent_of(tool, seconds);
  return {percent, summary_of(tool.interrupt().out).at("all").at("lost_words")};
}

/// Each with scheduler events, then without.
const std::array<Command, 4> commands{{
    {"record", true, [](double seconds) { return record(seconds, true); }},
    {"record --sched off", false, [](double seconds) { return record(seconds, false); }},
    {"latency", true, [](double seconds) { return latency_report(seconds, true); }},
    {"latency --sched off", false, [](double seconds) { return latency_report(seconds, false); }},
}};

/// OCaml's API reads one process, so there is a reader for each.
Use plain_readers(const Load& load, double seconds) {
  constexpr int interval_us = 100'000;
  const test::TempDir directory;
  std::deque<WritingPeer> readers;
  for (const pid_t pid : load.pids())
    readers.emplace_back(load.directory(), pid, interval_us, directory / std::to_string(pid));
  Use use{.percent = percent_of_a_core(seconds,
                                       [&] {
                                         std::uint64_t sum = 0;
                                         for (const WritingPeer& reader : readers) sum += reader.cpu_ns();
                                         return sum;
                                       }),
          .lost_words = 0};
  for (WritingPeer& reader : readers) use.lost_words += reader.stop();
  return use;
}

struct Rate {
  int processes;
  int events_per_second;  ///< of each process
  double max_percent, max_percent_without_scheduler;
};
/// The first one shows what it costs to look. Its goals are those of the next.
constexpr std::array<Rate, 6> rates{{{1, 20, 0.4, 0.2},
                                     {1, 1000, 0.4, 0.2},
                                     {1, 10'000, 0.4, 0.2},
                                     {1, 100'000, 1.5, 1.5},
                                     {10, 5000, 1.5, 1.5},
                                     {50, 1000, 3, 3}}};

struct Measured {
  Series percent{}, scheduler_per_second{};
  std::uint64_t lost_words = 0;

  void add(const Use& use) {
    percent.runs.push_back(use.percent);
    scheduler_per_second.runs.push_back(use.scheduler_per_second);
    lost_words += use.lost_words;
  }
};

/// At one rate: the readers, the last of which is the plain one if there is an OCaml.
using AtRate = std::array<Measured, commands.size() + 1>;

void run_round(const Rate& rate, AtRate& measured, double seconds, std::size_t first) {
  Load load(
      {"-P", std::to_string(rate.processes), "-r", std::to_string(rate.events_per_second), "-m", "gc=8,counters=2"});
  load.go();
  const std::size_t readers = commands.size() + (has_ocaml() ? 1 : 0);
  for (std::size_t turn = 0; turn < readers; ++turn) {
    const std::size_t i = (first + turn) % readers;
    measured[i].add(i < commands.size() ? commands[i].run(seconds) : plain_readers(load, seconds));
  }
  load.interrupt();
}

void add_cost_of_scheduler(Report& report, const std::string& what, const AtRate& measured) {
  const double records = measured.front().scheduler_per_second.median();
  for (std::size_t i = 0; records > 0 && i + 1 < commands.size(); i += 2) {
    const double percent = measured[i].percent.median() - measured[i + 1].percent.median();
    report.add({.section = "ordinary",
                .what = what,
                .unit = "ns/record",
                .subject = {.name = fmt::format("scheduler events of {}", commands[i].name),
                            .runs = {percent / 100 * 1e9 / records}},
                .note = fmt::format("{:.2f} % of a core more than without, for {:.0f} records a second; of the medians",
                                    percent, records)});
  }
}

void add_rows(Report& report, const Rate& rate, AtRate& measured) {
  const std::string what = fmt::format("{} process{} at {} events/s", rate.processes, rate.processes == 1 ? "" : "es",
                                       rate.events_per_second);
  Measured& plain = measured.back();
  plain.percent.name = rate.processes == 1 ? "a plain C reader" : fmt::format("{} plain C readers", rate.processes);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    measured[i].percent.name = commands[i].name;
    Row row{
        .section = "ordinary",
        .what = what,
        .unit = "% of a core",
        .subject = measured[i].percent,
        .goal = Goal::at_most(commands[i].has_scheduler ? rate.max_percent : rate.max_percent_without_scheduler, "%"),
        .figure = measured[i].percent.median(),
        .note = fmt::format("{} words lost", measured[i].lost_words)};
    if (has_ocaml()) {
      row.peer = plain.percent;
      row.note += fmt::format("; by the plain reader, or overwritten before it attached: {}", plain.lost_words);
    }
    report.add(std::move(row));
  }
  add_cost_of_scheduler(report, what, measured);
  if (!has_ocaml()) return;
  for (const bool has_scheduler : {false, true}) {
    double dearest = 0;
    for (std::size_t i = 0; i < commands.size(); ++i)
      if (commands[i].has_scheduler == has_scheduler) dearest = std::max(dearest, measured[i].percent.median());
    report.add({.section = "ordinary",
                .what = what,
                .unit = "x",
                .subject = {.name = has_scheduler ? "dearest against plain" : "dearest with --sched off against plain",
                            .runs = {dearest / plain.percent.median()}},
                .goal = Goal::at_most(1, "x"),
                .note = "of the medians; the plain reader polls ten times a second and writes each event to a file, "
                        "and it has no scheduler events"});
  }
}

}  // namespace

void ordinary(Report& report, const Effort& effort) {
  const bool is_quick = effort.seconds < 1;
  const int rounds = is_quick ? 1 : std::min(effort.rounds, 3);
  const double seconds = is_quick ? 0.5 : 2 * effort.seconds;
  std::array<AtRate, rates.size()> measured;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < rates.size(); ++i)
      run_round(rates[i], measured[i], seconds, static_cast<std::size_t>(round));
  }
  for (std::size_t i = 0; i < rates.size(); ++i) add_rows(report, rates[i], measured[i]);
}

}  // namespace rtev::bench
