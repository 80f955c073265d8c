// SPDX-License-Identifier: MIT
#include "analysis/stats/allocators.hpp"

#include <algorithm>

#include "analysis/profile/profile_words.hpp"

namespace rtev {
namespace {

bool is_allocation(const Event& event) {
  return event.kind == EventKind::sample && event.id == static_cast<std::uint16_t>(SampleKind::allocation);
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
    found.push_back(
        {.place = fmt::format("{}", PlaceName{report.tree, row.place}), .weight = weight, .all = report.all[0].weight});
  }
  return found;
}

}  // namespace rtev
