// SPDX-License-Identifier: MIT
#include "analysis/stats/allocators.hpp"

#include <algorithm>

#include "analysis/profile/profile_words.hpp"

namespace rtev {
namespace {

bool is_allocation(const Event& event) {
  return event.kind == EventKind::sample && event.id == static_cast<std::uint16_t>(SampleKind::allocation);
}

struct Users {
  const ProfileProcess* most;  ///< the first process of a report is unknown
  std::size_t count;
};

/// The processes that a place is of.
Users users_of(const ProfileReport& report, CallTree::Index place) {
  std::vector<std::uint64_t> weights(report.processes.size());
  for (const ProfileEntry& entry : report.entries)
    if (report.tree.nodes()[entry.node].place == place) weights[entry.process] += entry.value.weight;
  const auto most = static_cast<std::size_t>(std::ranges::max_element(weights) - weights.begin());
  const auto unused = static_cast<std::size_t>(std::ranges::count(weights, 0u));
  return {.most = &report.processes[most], .count = weights.size() - unused};
}

}  // namespace

void Allocators::consume(const Batch& batch, const Registry& registry) {
  if (!profile_) {
    if (std::ranges::none_of(batch.events(), is_allocation)) return;
    profile_ = std::make_unique<Profile>(ProfileOptions{.kind = SampleKind::allocation});
    profile_->header(header_);
  }
  profile_->consume(batch, registry);
}

std::vector<Allocator> Allocators::greatest(const Registry& registry) const {
  std::vector<Allocator> found;
  if (!profile_) return found;
  const ProfileReport report = profile_->report(registry);
  for (const ProfileRow& row : report.lines) {
    const std::uint64_t weight = row.self[0].weight;
    if (weight == 0 || found.size() == max_allocators) break;
    TextBuffer place;
    append(place, PlaceName{report.tree, row.place});
    if (row.caller != 0) print(place, ", called from {}", PlaceName{report.tree, row.caller});
    const auto [most, count] = users_of(report, row.place);
    if (report.processes.size() > 2) {
      if (count > 1) print(place, " of {} processes, most of it", count);
      if (most->pid == 0) place.add(" of an unknown process");
      if (most->pid != 0) print(place, " of {}", ProcessName{most->comm, most->pid});
    }
    found.push_back(
        {.place = std::string(place.text()), .weight = weight, .all = report.all[0].weight, .pid = most->pid});
  }
  return found;
}

}  // namespace rtev
