// SPDX-License-Identifier: MIT
#include "load/plan.hpp"

#include <algorithm>

#include "load/composer.hpp"

namespace rtev::load {
namespace {

/// Long enough to look irregular, short enough for the first-level cache.
constexpr std::size_t min_steps = 2048;

/// The part that is furthest behind its share.
Part next_part(const Mix& mix, const std::array<std::uint64_t, part_count>& events) {
  Part best{};
  bool found = false;
  for (std::size_t i = 0; i < part_count; ++i) {
    const Part part{static_cast<std::uint8_t>(i)};
    if (mix.weight(part) == 0) continue;
    const bool is_behind =
        !found || events[i] * mix.weight(best) < events[static_cast<std::size_t>(best)] * mix.weight(part);
    if (is_behind) best = part;
    found = true;
  }
  return best;
}

}  // namespace

Plan Plan::make(const PlanOptions& options) {
  Plan plan;
  Composer composer(plan, options);
  std::array<std::uint64_t, part_count> events{};
  while (plan.steps_.size() < min_steps) {
    const Part part = next_part(options.mix, events);
    const std::size_t before = plan.steps_.size();
    composer.add(part);
    plan.block_ends_.push_back(plan.steps_.size());
    events[static_cast<std::size_t>(part)] += plan.steps_.size() - before;
  }
  return plan;
}

std::size_t Plan::block_end(std::size_t position) const {
  return *std::ranges::lower_bound(block_ends_, position);
}

EventCounts Plan::counts(std::uint64_t written) const {
  const std::uint64_t rounds = written / steps_.size();
  const std::size_t rest = written % steps_.size();
  EventCounts counts{};
  for (std::size_t i = 0; i < steps_.size(); ++i)
    counts[static_cast<std::size_t>(steps_[i].kind)] += rounds + (i < rest ? 1 : 0);
  return counts;
}

}  // namespace rtev::load
