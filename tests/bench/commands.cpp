// SPDX-License-Identifier: MIT
// How long commands take that do next to nothing: what rtev-bpf itself takes to start and to end.
#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

void run_tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RTEV_TOOL);
  const test::Outcome outcome = test::Process(test::Command{.argv = arguments}).wait();
  if (outcome.status.code() != 0) throw std::runtime_error(fmt::format("{}: {}", arguments[1], outcome.err));
}

}  // namespace

void commands(Report& report, const Effort& effort) {
  const test::TempDir directory;
  const std::string recording = directory / "small.fxt";
  run_tool({"record", "-o", recording, "--", "true"});
  struct Timed {
    const char* what;
    std::vector<std::string> arguments;
    double most_ms;
    Series series{.name = "rtev-bpf", .runs = {}};
  };
  std::array commands{Timed{"--help", {"--help"}, 10}, Timed{"dump of a recording of `true`", {"dump", recording}, 10},
                      Timed{"summary -- true", {"summary", "--", "true"}, 150}, Timed{"ps", {"ps"}, 150}};
  // A run takes a moment only, and other programs of the host delay it.
  constexpr int runs_of_round = 3;
  in_turns(effort.rounds * runs_of_round, commands.size(), [&](std::size_t i) {
    const std::uint64_t begin_ns = monotonic_ns();
    run_tool(commands[i].arguments);
    commands[i].series.runs.push_back(static_cast<double>(monotonic_ns() - begin_ns) / 1e6);
  });
  for (Timed& timed : commands)
    report.add({.section = "commands",
                .what = timed.what,
                .unit = "ms",
                .subject = std::move(timed.series),
                .goal = Goal::at_most(timed.most_ms, "ms"),
                .note = "from its start until it has ended"});
}

}  // namespace rtev::bench
