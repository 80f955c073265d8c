// SPDX-License-Identifier: MIT
// What tracing costs the traced program, measured until a cost of 1 % is visible.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/toil.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

struct Work {
  const char* what;
  const char* kind;        ///< of tests/ocaml/toil.ml
  std::optional<int> cpu;  ///< of the whole program; else it chooses itself
  double max_without_scheduler, max_with_scheduler;
};
const std::array<Work, 4> works{{{"one domain that allocates", "alloc", 0, 1.01, 1.02},
                                 {"two domains that allocate, one on each cpu", "domains", std::nullopt, 1.01, 1.02},
                                 {"system calls", "calls", 0, 1.05, 1.05},
                                 {"sleeping and waking 10,000 times a second", "wakes", 0, 1.05, 1.05}}};

enum Variant : std::size_t { events_off, without_scheduler, with_scheduler, variants };
constexpr std::array<const char*, variants> names{"events off, untraced", "record --sched off", "record"};

/// Costs against the same work with events on and untraced; one of each round.
struct Ratios {
  Series cpu{}, run_time{};
};

Cost run_variant(Variant variant, Toil& off, Toil& on, int amount) {
  if (variant == events_off) return off.block(amount);
  const test::TempDir directory;
  std::vector<std::string> arguments{"record", "-q", "-o", directory / "trace.fxt"};
  if (variant == without_scheduler) arguments.insert(arguments.end(), {"--sched", "off"});
  Tool tool(arguments);
  const Cost cost = on.block(amount);
  tool.interrupt();
  return cost;
}

/// Untraced blocks before and after each of the others, which come in an order of chance.
void run_round(Toil& off, Toil& on, int amount, std::minstd_rand& chance, std::array<Ratios, variants>& ratios) {
  std::array<Variant, variants> order{events_off, without_scheduler, with_scheduler};
  std::ranges::shuffle(order, chance);
  Cost before = on.block(amount);
  for (const Variant variant : order) {
    const Cost cost = run_variant(variant, off, on, amount);
    const Cost after = on.block(amount);
    ratios[variant].cpu.runs.push_back(2 * cost.cpu / (before.cpu + after.cpu));
    ratios[variant].run_time.runs.push_back(2 * cost.run_time / (before.run_time + after.run_time));
    before = after;
  }
}

/// Of what has goals: not of the programs with events off.
bool is_precise(const std::array<Ratios, variants>& ratios) {
  constexpr double enough = 0.01;  // ±0.5 %
  return std::all_of(ratios.begin() + without_scheduler, ratios.end(), [](const Ratios& ratio) {
    return std::ranges::all_of(std::array{&ratio.cpu, &ratio.run_time}, [](const Series* series) {
      const auto [least, most] = series->interval();
      return most - least <= enough;
    });
  });
}

void add_row(Report& report, const Work& work, Variant variant, const char* what, const Series& ratio) {
  const auto [least, most] = ratio.interval();
  Series subject{.name = names[variant], .runs = ratio.runs};
  Row row{.section = "traced",
          .what = fmt::format("{}: {}", work.what, what),
          .unit = "x",
          .subject = std::move(subject),
          .note = fmt::format("95 % interval of the median: {:.4f} to {:.4f}, after {} rounds", least, most,
                              ratio.runs.size())};
  if (!std::isfinite(least)) row.note = "too few rounds for an interval of the median";
  if (variant != events_off) {
    const double bound = variant == with_scheduler ? work.max_with_scheduler : work.max_without_scheduler;
    row.goal = Goal::at_most(bound, "x");
    row.figure = ratio.median();
    if (least <= bound && bound < most) row.note += "; the goal lies in it, so this run does not decide";
  }
  report.add(std::move(row));
}

void measure(Report& report, const Work& work, const Effort& effort) {
  // Programs with another layout in memory are a few percent faster or slower, so one is not used for long.
  constexpr int rounds_of_a_program = 4;
  std::minstd_rand chance;
  std::array<Ratios, variants> ratios;
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(effort.traced_seconds * 1e9);
  const test::TempDir directory;
  do {
    Toil off(work.kind, work.cpu, directory.path(), false), on(work.kind, work.cpu, directory.path(), true);
    const int amount = on.usual_amount();
    off.piece(amount);
    for (int round = 0; round < rounds_of_a_program && monotonic_ns() < end; ++round)
      run_round(off, on, amount, chance, ratios);
  } while (monotonic_ns() < end && !is_precise(ratios));
  for (std::size_t i = 0; i < variants; ++i) {
    add_row(report, work, static_cast<Variant>(i), "its cpu time", ratios[i].cpu);
    add_row(report, work, static_cast<Variant>(i), "its run time", ratios[i].run_time);
  }
}

}  // namespace

void traced(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  for (const Work& work : works) measure(report, work, effort);
}

}  // namespace rtev::bench
