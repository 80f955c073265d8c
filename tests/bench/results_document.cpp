// SPDX-License-Identifier: MIT
#include "bench/results_document.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>

namespace rtev::bench {

void write_markdown(std::ostream& out, const Report& report, const Machine& machine, const std::string& commit,
                    const std::string& took) {
  fmt::print(out,
             "# Results of one run\n\n"
             "`scripts/bench`, in {}. Figures are medians of interleaved runs; the table below also has least and\n"
             "greatest values. Nothing is asserted.\n\n| | |\n|---|---|\n| commit | {} |\n",
             took, commit);
  for (const auto& [name, value] : machine) fmt::print(out, "| {} | {} |\n", name, value);
  const auto& rows = report.rows();
  const auto goals = std::ranges::count_if(rows, [](const Row& row) { return row.met().has_value(); });
  const auto met = std::ranges::count_if(rows, [](const Row& row) { return row.met().value_or(false); });
  fmt::print(out, "\n## Missed goals\n\n{} of {} goals are met.{}\n\n", met, goals, met == goals ? "" : " The others:");
  for (const Row& row : rows) {
    if (row.met().value_or(true)) continue;
    fmt::print(out, "- {}, {}, {}: {:.4g}, goal {}\n", row.section, row.what, row.subject.name, row.judged(),
               row.goal->text);
  }
  fmt::print(out, "\n## The table\n\n```\n");
  report.print_table(out, machine);
  fmt::print(out, "```\n");
}

}  // namespace rtev::bench
