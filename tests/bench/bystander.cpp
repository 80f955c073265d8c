// SPDX-License-Identifier: MIT
// Cost of the tracer for programs other than OCaml's: two processes that do nothing but switch.
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"
#include "bench/benchmarks.hpp"
#include "bench/producer.hpp"
#include "bench/tool.hpp"
#include "support/tracepoints.hpp"

namespace rtev::bench {
namespace {

struct Pipe {
  UniqueFd in, out;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Sends a byte back and forth between two processes for this long. Returns thousands of round trips per second.
double ping_pong(int this_cpu, int that_cpu, double seconds) {
  constexpr int trips_per_reading = 64;
  Pipe there = make_pipe(), back = make_pipe();
  char ball = 0;
  const pid_t partner = ::fork();
  if (partner < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (partner == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const CpuBinding binding(that_cpu);
    there.out.reset();
    while (::read(there.in.get(), &ball, 1) == 1 && ::write(back.out.get(), &ball, 1) == 1) continue;
    ::_exit(0);
  }
  const CpuBinding binding(this_cpu);
  back.out.reset();
  const auto trip = [&] { return ::write(there.out.get(), &ball, 1) == 1 && ::read(back.in.get(), &ball, 1) == 1; };
  bool good = true;
  for (int i = 0; i < 1000 && good; ++i) good = trip();
  const std::uint64_t start = monotonic_ns(), end = start + static_cast<std::uint64_t>(seconds * 1e9);
  std::uint64_t trips = 0, now = start;
  for (; now < end && good; now = monotonic_ns()) {
    for (int i = 0; i < trips_per_reading && good; ++i) good = trip();
    trips += trips_per_reading;
  }
  there.out.reset();
  ::waitpid(partner, nullptr, 0);
  if (!good) throw std::runtime_error("the partner of the ping-pong failed");
  return static_cast<double>(trips) * 1e6 / static_cast<double>(now - start);
}

/// Time for what the kernel does after programs were detached.
constexpr std::chrono::seconds settling{1};

const std::array<Setting, 3> settings{{{"untraced", std::nullopt},
                                       {"--sched off", std::vector<std::string>{"-o", "/dev/null", "--sched", "off"}},
                                       {"default options", std::vector<std::string>{"-o", "/dev/null"}}}};

void measure(Report& report, const std::string& what, int that_cpu, const Effort& effort) {
  // The thread that reads a tool's output makes reads and writes of this process slower: without a tool there is one,
  // too.
  const test::Process idle({.argv = {"cat"}});
  std::array<Series, 3> measured;
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i].name = settings[i].name;
  in_turns(effort.rounds, measured.size(), [&](std::size_t i) {
    std::optional<Tool> tool;
    if (settings[i].tool) {
      tool.emplace(*settings[i].tool);
      // Unless OCaml programs run on this host.
      if (!test::await_sched_programs(tool->process().pid(), false))
        fmt::print(stderr, "bystander: OCaml programs run, so what is measured is their tracing\n");
      std::this_thread::sleep_for(settling);
    }
    measured[i].runs.push_back(ping_pong(0, that_cpu, effort.seconds));
    if (tool) tool->interrupt();
  });
  const Series& alone = measured[0];
  const Goal goal{.text = "within the untraced runs",
                  .met = [least = alone.least()](double median) { return median >= least; }};
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const double more_ns = 1e6 / measured[i].median() - 1e6 / alone.median();
    report.add({.section = "bystander",
                .what = fmt::format("{}, {}", what, settings[i].name),
                .unit = "k round trips/s",
                .subject = measured[i],
                .peer = alone,
                .goal = goal,
                .figure = measured[i].median(),
                .note = fmt::format(
                    "a byte through two pipes, two switches and two wake-ups on one cpu: {:.0f} ns more a round "
                    "trip; noise is the range of the untraced runs: {:.1f} % of their median",
                    more_ns, 100 * (alone.greatest() - alone.least()) / alone.median())});
  }
}

}  // namespace

void bystander(Report& report, const Effort& effort) {
  measure(report, "pipe ping-pong on one cpu", 0, effort);
  if (std::thread::hardware_concurrency() > 1) measure(report, "pipe ping-pong between two cpus", 1, effort);
}

}  // namespace rtev::bench
