// SPDX-License-Identifier: MIT
// rtev-bench: runs the benchmarks, prints a table on stdout and writes JSON for programs.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <ratio>
#include <string>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/machine.hpp"
#include "bench/result_table.hpp"
#include "bench/results_document.hpp"

namespace {

using namespace rtev::bench;

struct Benchmark {
  std::string name;
  void (*run)(Report&, const Effort&);
};

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all{
      {"ordinary", ordinary},   {"burst", burst},         {"decode", decode},
      {"live", live},           {"pipeline", pipeline},   {"scheduler", scheduler},
      {"idle", idle},           {"traced", traced},       {"stacks", stacks},
      {"enabling", enabling},   {"bystander", bystander}, {"growth", growth},
      {"latency", latency},     {"commands", commands},   {"trace_writing", trace_writing},
      {"recording", recording}, {"ringless", ringless}};
  return all;
}

/// A failed benchmark becomes a row with the error; the others still run.
bool run(const Benchmark& benchmark, Report& report, const Effort& effort) {
  const auto start = std::chrono::steady_clock::now();
  fmt::print(stderr, "==> {}\n", benchmark.name);
  bool good = true;
  try {
    benchmark.run(report, effort);
  } catch (const std::exception& error) {
    good = false;
    report.add({.section = benchmark.name, .what = "FAILED", .unit = "", .subject = {}, .note = error.what()});
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print(stderr, "    {} took {:.0f} s\n", benchmark.name, took.count());
  return good;
}

std::string minutes_since(std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::ratio<60>> took = std::chrono::steady_clock::now() - start;
  return fmt::format("{:.0f} minutes", took.count());
}

/// Does nothing without a path.
bool write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path.empty()) return true;
  std::ofstream file(path);
  write(file);
  file.close();
  if (!file) fmt::print(stderr, "rtev-bench: cannot write to {}\n", path);
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of rtev-bpf and librtev, in turns with OCaml's own readers.", "rtev-bench");
  bool quick = false;
  int rounds = 0, bursts = 0;
  double traced_seconds = 0;
  std::string json, markdown, svg, commit = "unknown";
  std::vector<std::string> only;
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks()) names.push_back(benchmark.name);
  app.add_flag("--quick", quick, "few and short runs: to see that it works, not to quote");
  app.add_option("--json", json, "write the figures of every run to this file")->type_name("FILE");
  app.add_option("--markdown", markdown, "write the run as a document to this file, e.g. RESULTS.md")
      ->type_name("FILE");
  app.add_option("--commit", commit, "what was measured, for --markdown")->type_name("COMMIT");
  app.add_option("--svg", svg, "draw the curves of `growth` into this file")->type_name("FILE");
  app.add_option("--only", only, "only these benchmarks")->type_name("NAME")->check(CLI::IsMember(names));
  app.add_option("--rounds", rounds, "runs of each thing measured (default 7, quick 3)")->check(CLI::Range(1, 1000));
  app.add_option("--bursts", bursts, "bursts of each case of `burst` (default 25, quick 2)")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--traced-seconds", traced_seconds,
                 "time limit for each program of `traced`, and for `enabling` (default 60, quick 4)")
      ->check(CLI::Range(1.0, 100'000.0));
  CLI11_PARSE(app, argc, argv);
  if (::geteuid() != 0) {
    fmt::print(stderr, "rtev-bench: only root may load eBPF programs\nhint: sudo rtev-bench\n");
    return 1;
  }
  ::signal(SIGPIPE, SIG_IGN);

  Effort effort = quick ? Effort{.rounds = 3, .seconds = 0.3, .bursts = 2, .traced_seconds = 4} : Effort{};
  if (rounds > 0) effort.rounds = rounds;
  if (bursts > 0) effort.bursts = bursts;
  if (traced_seconds > 0) effort.traced_seconds = traced_seconds;
  const Machine machine = this_machine();
  const auto start = std::chrono::steady_clock::now();
  Report report;
  bool good = true;
  for (const Benchmark& benchmark : benchmarks()) {
    if (only.empty() || std::ranges::find(only, benchmark.name) != only.end())
      good = run(benchmark, report, effort) && good;
  }
  report.print_table(std::cout, machine);
  std::cout.flush();
  good = write_file(json, [&](std::ostream& out) { report.print_json(out, machine); }) && good;
  const std::string took = minutes_since(start);
  good = write_file(markdown, [&](std::ostream& out) { write_markdown(out, report, machine, commit, took); }) && good;
  if (!report.curves().empty())
    good = write_file(svg, [&](std::ostream& out) { write_svg(out, report.curves()); }) && good;
  return good ? 0 : 1;
}
