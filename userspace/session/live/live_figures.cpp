// SPDX-License-Identifier: MIT
// What LiveSources counts for the summary: dropped records, and rings that are not read.
#include <string.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "session/live/live_sources.hpp"

namespace rtev {
namespace {

constexpr std::array<std::string_view, RTEV_STAT_COUNT> drop_names = {"switch", "wakeup", "exec",      "fork", "exit",
                                                                      "ring",   "probe",  "untracked", "save"};

}  // namespace

void LiveSources::add_figures(RunSummary& summary) const {
  add_announcers(summary);  // before the sum of their drops, which go on
  const kernel::Drops drops = programs_.drops();
  for (std::size_t kind = 0; kind < drops.size(); ++kind)
    summary.drops.push_back({.kind = std::string(drop_names[kind]), .count = drops[kind]});
  if (stacks_) {
    summary.drops.push_back({.kind = std::string(RunSummary::sample), .count = stacks_->dropped()});
    summary.drops.push_back({.kind = "tables", .count = stacks_->left_out_tables()});
  }
  if (ringless_) {
    const Ringless::Figures figures = ringless_->figures();
    summary.drops.push_back({.kind = "probed", .count = figures.dropped + figures.unplaced});
    summary.drops.push_back({.kind = std::string(RunSummary::limited), .count = figures.gaps});
    summary.drops.push_back({.kind = std::string(RunSummary::unprobed), .count = ringless_->unprobed().processes()});
  }
  // Some processes that do not answer are not known, and have no event: they are what is left.
  std::uint64_t no_answer = discovery_.unreadable();
  for (const auto& [why, kind] : {std::pair(Unreadable::file_system, RunSummary::ring_file_system),
                                  std::pair(Unreadable::memory, RunSummary::ring_memory),
                                  std::pair(Unreadable::other_user, RunSummary::ring_other_user)}) {
    const auto found = unreadable_.find(why);
    const std::uint64_t count = found != unreadable_.end() ? found->second : 0;
    summary.drops.push_back({.kind = std::string(kind), .count = count});
    no_answer -= std::min(no_answer, count);
  }
  summary.drops.push_back({.kind = std::string(RunSummary::ring_no_answer), .count = no_answer});
  summary.rings_missed = discovery_.rings_missed() + discovery_.unreadable() + rings_.taken_over();
}

void LiveSources::add_announcers(RunSummary& summary) const {
  for (const auto& [pid, budget] : programs_.budgets()) {
    if (budget.dropped == 0) continue;
    summary.announcers.push_back(
        {.pid = pid, .comm = {budget.comm, ::strnlen(budget.comm, RTEV_COMM)}, .dropped = budget.dropped});
  }
}

}  // namespace rtev
