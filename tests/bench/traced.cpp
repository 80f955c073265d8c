// SPDX-License-Identifier: MIT
// What tracing costs the traced program, with and without stacks, measured until a cost of 1 % is visible.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
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
};
constexpr Work allocating{"one domain that allocates", "alloc", 0};

/// How the program is traced.
struct Variant {
  const char* name;
  std::vector<std::string> arguments;  ///< of the tool, which writes to a file; none: not at all, with events off
  std::optional<double> max{};         ///< goal
};

/// Costs against the same work with events on and untraced; one of each round.
struct Ratios {
  Series cpu{}, run_time{};
};

Cost run_variant(const Variant& variant, Toil& off, Toil& on, int amount) {
  if (variant.arguments.empty()) return off.block(amount);
  const test::TempDir directory;
  std::vector<std::string> arguments = variant.arguments;
  const char* const file = arguments.front() == "record" ? "trace.fxt" : "report.txt";
  arguments.insert(arguments.end(), {"-q", "-o", directory / file});
  Tool tool(arguments);
  const Cost cost = on.block(amount);
  tool.interrupt();
  return cost;
}

/// Untraced blocks before and after each of the others, which come in an order of chance.
void run_round(Toil& off, Toil& on, int amount, std::minstd_rand& chance, const std::vector<Variant>& variants,
               std::vector<Ratios>& ratios) {
  std::vector<std::size_t> order(variants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, chance);
  Cost before = on.block(amount);
  for (const std::size_t variant : order) {
    const Cost cost = run_variant(variants[variant], off, on, amount);
    const Cost after = on.block(amount);
    ratios[variant].cpu.runs.push_back(2 * cost.cpu / (before.cpu + after.cpu));
    ratios[variant].run_time.runs.push_back(2 * cost.run_time / (before.run_time + after.run_time));
    before = after;
  }
}

/// Of what has goals: not of the programs with events off.
bool is_precise(const std::vector<Variant>& variants, const std::vector<Ratios>& ratios) {
  constexpr double enough = 0.01;  // ±0.5 %
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (const Series* const series : {&ratios[i].cpu, &ratios[i].run_time}) {
      const auto [least, most] = series->interval();
      if (variants[i].max && !(most - least <= enough)) return false;
    }
  }
  return true;
}

void add_row(Report& report, const char* section, const Work& work, const Variant& variant, const char* what,
             const Series& ratio) {
  const auto [least, most] = ratio.interval();
  Series subject{.name = variant.name, .runs = ratio.runs};
  Row row{.section = section,
          .what = fmt::format("{}: {}", work.what, what),
          .unit = "x",
          .subject = std::move(subject),
          .note = fmt::format("95 % interval of the median: {:.4f} to {:.4f}, after {} rounds", least, most,
                              ratio.runs.size())};
  if (!std::isfinite(least)) row.note = "too few rounds for an interval of the median";
  if (variant.max) {
    row.goal = Goal::at_most(*variant.max, "x");
    row.figure = ratio.median();
    if (least <= *variant.max && *variant.max < most) row.note += "; the goal lies in it, so this run does not decide";
  }
  report.add(std::move(row));
}

void measure(Report& report, const char* section, const Work& work, const std::vector<Variant>& variants,
             const Effort& effort) {
  // Programs with another layout in memory are a few percent faster or slower, so one is not used for long.
  constexpr int rounds_of_a_program = 4;
  std::minstd_rand chance;
  std::vector<Ratios> ratios(variants.size());
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(effort.traced_seconds * 1e9);
  const test::TempDir directory;
  do {
    Toil off(work.kind, work.cpu, directory.path(), false), on(work.kind, work.cpu, directory.path(), true);
    const int amount = on.usual_amount();
    off.piece(amount);
    for (int round = 0; round < rounds_of_a_program && monotonic_ns() < end; ++round)
      run_round(off, on, amount, chance, variants, ratios);
  } while (monotonic_ns() < end && !is_precise(variants, ratios));
  for (std::size_t i = 0; i < variants.size(); ++i) {
    add_row(report, section, work, variants[i], "its cpu time", ratios[i].cpu);
    add_row(report, section, work, variants[i], "its run time", ratios[i].run_time);
  }
}

}  // namespace

void traced(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  const auto variants = [](double max_without_scheduler, double max_with_scheduler) {
    return std::vector<Variant>{{"events off, untraced", {}},
                                {"record --sched off", {"record", "--sched", "off"}, max_without_scheduler},
                                {"record", {"record"}, max_with_scheduler}};
  };
  measure(report, "traced", allocating, variants(1.01, 1.02), effort);
  measure(report, "traced", {"two domains that allocate, one on each cpu", "domains", std::nullopt},
          variants(1.01, 1.02), effort);
  measure(report, "traced", {"system calls", "calls", 0}, variants(1.05, 1.05), effort);
  measure(report, "traced", {"sleeping and waking 10,000 times a second", "wakes", 0}, variants(1.05, 1.05), effort);
}

void stacks(Report& report, const Effort& effort) {
  if (!has_ocaml()) return;
  measure(report, "stacks", allocating,
          {{"record --stacks", {"record", "--stacks"}, 1.02},
           {"record --stacks --stack-rate 999", {"record", "--stacks", "--stack-rate", "999"}, 1.05},
           {"profile", {"profile"}, 1.02},
           {"allocs", {"allocs"}, 1.03}},
          effort);
}

}  // namespace rtev::bench
