// SPDX-License-Identifier: MIT
// Cost of the tracer when no event is written.
#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/idle_fleet.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

constexpr std::uint32_t many = 500;
constexpr double max_cpu_percent = 0.1;
constexpr double max_mb = 40;

/// Time for one-time work and the kernel's grace periods after it.
constexpr std::chrono::seconds settling{3};

/// A value of /proc/PID/status or smaps_rollup, in MB.
double memory_mb(pid_t pid, const char* file, std::string_view key) {
  std::ifstream lines("/proc/" + std::to_string(pid) + '/' + file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size() + 1)) * 1024 / 1e6;
  }
  return 0;
}

std::uint64_t wakeups(pid_t pid) {
  std::uint64_t sum = 0;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream lines(task.path() / "status");
    constexpr std::string_view key = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(key)) sum += std::stoull(line.substr(key.size()));
    }
  }
  return sum;
}

struct Idle {
  Series cpu{.name = "rtev-bpf", .runs = {}};
  Series rss{.name = "VmRSS", .runs = {}};
  Series pss{.name = "Pss", .runs = {}};
  Series start{.name = "start to ready", .runs = {}};
  double wakeups_a_second = 0;
  double anonymous_mb = 0;
  std::uint64_t events = 0;  ///< all events, including those of other programs on this host
};

/// The tracer, host-wide, beside the running processes.
Idle watch(const Effort& effort) {
  // Long enough for one look at every ring, every 30 seconds, and for three scans for new processes.
  const std::chrono::duration<double> window(effort.seconds < 1 ? 3 : 30);
  const int rounds = effort.rounds < 7 ? 1 : 3;
  Idle idle;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t launched = monotonic_ns();
    Tool tool({"-f", "jsonl", "--events", "process"});
    idle.start.runs.push_back(static_cast<double>(monotonic_ns() - launched) / 1e6);
    std::this_thread::sleep_for(settling);
    const pid_t pid = tool.process().pid();
    const std::uint64_t cpu = tool.tree_cpu_ns(), wakes = wakeups(pid), start = monotonic_ns();
    std::this_thread::sleep_for(window);
    const auto elapsed = static_cast<double>(monotonic_ns() - start);
    idle.cpu.runs.push_back(100 * static_cast<double>(tool.tree_cpu_ns() - cpu) / elapsed);
    idle.wakeups_a_second = static_cast<double>(wakeups(pid) - wakes) / elapsed * 1e9;
    idle.rss.runs.push_back(memory_mb(pid, "status", "VmRSS:"));
    idle.pss.runs.push_back(memory_mb(pid, "smaps_rollup", "Pss:"));
    idle.anonymous_mb = memory_mb(pid, "status", "RssAnon:");
    const nlohmann::json summary = summary_of(tool.interrupt().out);
    const nlohmann::json events = summary.value("events", nlohmann::json::object());
    for (const auto& [kind, count] : events.items()) idle.events += count.get<std::uint64_t>();
  }
  return idle;
}

void report_idle(Report& report, const std::string& beside, const Idle& idle, bool has_goals) {
  const auto goal = [&](double most, std::string_view unit) {
    return has_goals ? std::optional(Goal::at_most(most, unit)) : std::nullopt;
  };
  report.add({.section = "idle",
              .what = beside + ": cpu",
              .unit = "% of one core",
              .subject = idle.cpu,
              .goal = goal(max_cpu_percent, "%"),
              .note = fmt::format(
                  "all threads and helpers, from 3 s after the start; {:.0f} wake-ups a second; {} events in all, "
                  "many if something on this host is not idle",
                  idle.wakeups_a_second, idle.events)});
  report.add({.section = "idle",
              .what = beside + ": memory, shared pages as its own",
              .unit = "MB",
              .subject = idle.rss,
              .goal = goal(max_mb, "MB"),
              .note = fmt::format("counts pages of rings, which are mapped and are their programs' memory; {:.1f} MB "
                                  "are the tracer's own (RssAnon)",
                                  idle.anonymous_mb)});
  report.add({.section = "idle",
              .what = beside + ": memory, shared pages in part",
              .unit = "MB",
              .subject = idle.pss,
              .note = "each page divided by the number of processes that map it"});
  report.add({.section = "idle",
              .what = beside + ": start",
              .unit = "ms",
              .subject = idle.start,
              .note = "until all is attached and every process has been looked at"});
}

/// As many real programs with events on, waiting for input.
class Sleepers {
 public:
  explicit Sleepers(std::uint32_t count) {
    // Each needs a few pipes in this process.
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    for (std::uint32_t i = 0; i < count; ++i) programs_.emplace_back(ocaml_program("busy_alloc", directory_.path()));
    for (test::Process& program : programs_) program.lines_until("ready");
  }

 private:
  test::TempDir directory_;
  std::deque<test::Process> programs_;
};

}  // namespace

void idle(Report& report, const Effort& effort) {
  report_idle(report, "no rings", watch(effort), false);
  {
    const Fleet fleet({.processes = many});
    report_idle(report, fmt::format("{} processes with rings", many), watch(effort), true);
  }
  if (!has_ocaml()) return;
  const Sleepers sleepers(many);
  report_idle(report, fmt::format("{} OCaml programs", many), watch(effort), true);
}

}  // namespace rtev::bench
