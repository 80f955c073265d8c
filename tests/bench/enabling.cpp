// SPDX-License-Identifier: MIT
// What events cost a program in which `rtev-bpf enable` switched them on, beside one that started with them on.
#include <fmt/core.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/toil.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

/// Runs `rtev-bpf enable` or `disable` for a program, while it works.
void switch_events(const char* command, Toil& toil, int amount) {
  test::Process tool(test::Command{.argv = {RTEV_TOOL, command, "-p", std::to_string(toil.pid())}});
  // A switch comes when the program runs.
  for (int i = 0; i < 5; ++i) toil.piece(amount);
  const test::Outcome outcome = tool.wait();
  if (outcome.status.code() != 0) throw std::runtime_error(fmt::format("{}: {}", command, outcome.err));
}

/// Cpu time with events on, against the same program with paused events before and after.
double cost_of_events(Toil& toil, int amount, Cost paused_before, Cost& paused_after) {
  switch_events("enable", toil, amount);
  const Cost on = toil.block(amount);
  switch_events("disable", toil, amount);
  paused_after = toil.block(amount);
  return 2 * on.cpu / (paused_before.cpu + paused_after.cpu);
}

void add_row(Report& report, const char* what, const char* against, const Series& ratio, std::optional<Goal> goal) {
  const auto [least, most] = ratio.interval();
  Row row{.section = "enabling",
          .what = what,
          .unit = "x",
          .subject = {.name = against, .runs = ratio.runs},
          .goal = std::move(goal),
          .note = fmt::format("its cpu time; 95 % interval of the median: {:.4f} to {:.4f}, of {} programs", least,
                              most, ratio.runs.size())};
  if (!std::isfinite(least)) row.note = "too few programs for an interval of the median";
  row.figure = ratio.median();
  report.add(std::move(row));
}

}  // namespace

/// Programs with another layout in memory are a few percent faster or slower: each is compared with itself.
void enabling(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  constexpr const char* kind = "alloc";
  constexpr int cpu = 0;
  Series paused, enabled, started;
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(effort.traced_seconds * 1e9);
  do {
    const test::TempDir directory;
    Toil without(kind, cpu, directory.path(), false), with(kind, cpu, directory.path(), true);
    const int amount = without.usual_amount();
    const Cost off = without.block(amount);
    switch_events("enable", without, amount);
    switch_events("disable", without, amount);
    const Cost after = without.block(amount);
    paused.runs.push_back(after.cpu / off.cpu);
    Cost last{};
    enabled.runs.push_back(cost_of_events(without, amount, after, last));
    switch_events("disable", with, amount);
    started.runs.push_back(cost_of_events(with, amount, with.block(amount), last));
  } while (monotonic_ns() < end);
  add_row(report, "events paused by rtev-bpf disable", "against events off", paused, Goal::at_most(1.005, "x"));
  add_row(report, "events switched on by rtev-bpf enable", "against paused", enabled, {});
  add_row(report, "events on from the start", "against paused", started, {});
  Row row{.section = "enabling",
          .what = "cost of events, switched on against on from the start",
          .unit = "x",
          .subject = {.name = "of the medians", .runs = {enabled.median() / started.median()}},
          .goal = Goal::at_most(1.01, "x")};
  report.add(std::move(row));
}

}  // namespace rtev::bench
