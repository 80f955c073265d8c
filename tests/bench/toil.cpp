// SPDX-License-Identifier: MIT
#include "bench/toil.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "bench/ocaml_program.hpp"
#include "bench/result_table.hpp"

namespace rtev::bench {
namespace {

constexpr double piece_seconds = 0.06;

test::Command command(const char* kind, std::optional<int> cpu, const std::filesystem::path& directory, bool events) {
  test::Command command = ocaml_program("toil", directory, {kind});
  if (!events) command.env = {{"OCAML_RUNTIME_EVENTS_DIR", directory}};
  command.cpu = cpu;
  return command;
}

}  // namespace

Toil::Toil(const char* kind, std::optional<int> cpu, const std::filesystem::path& directory, bool events)
    : process_(command(kind, cpu, directory, events), "ready") {}

Cost Toil::piece(int amount) {
  process_.write(fmt::format("{}\n", amount));
  std::istringstream words(process_.line_with("."));
  Cost cost{};
  if (!(words >> cost.cpu >> cost.run_time)) throw std::runtime_error("invalid output of toil");
  return cost;
}

Cost Toil::block(int amount) {
  constexpr int pieces = 5;
  piece(amount);
  Series cpu, run_time;
  for (int i = 0; i < pieces; ++i) {
    const Cost cost = piece(amount);
    cpu.runs.push_back(cost.cpu);
    run_time.runs.push_back(cost.run_time);
  }
  return {cpu.median(), run_time.median()};
}

int Toil::usual_amount() {
  int amount = 16;
  double seconds = piece(amount).run_time;
  // The first pieces are slower: memory is new.
  while (seconds < piece_seconds / 4) seconds = piece(amount *= 2).run_time;
  return std::max(1, static_cast<int>(std::lround(amount * piece_seconds / piece(amount).run_time)));
}

}  // namespace rtev::bench
