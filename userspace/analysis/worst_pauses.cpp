// SPDX-License-Identifier: MIT
#include "analysis/worst_pauses.hpp"

#include <algorithm>
#include <functional>

namespace rtev {

void WorstPauses::add(PauseAnatomy&& pause) {
  const auto is_one_with = [&](const PauseAnatomy& other) {
    return other.domain.process == pause.domain.process && other.shares_section(pause);
  };
  const auto longer = [&](const PauseAnatomy& other) { return other.duration_ns() >= pause.duration_ns(); };
  if (std::ranges::any_of(kept_, [&](const PauseAnatomy& other) { return longer(other) && is_one_with(other); })) {
    ++represented_;
    return;
  }
  represented_ += std::erase_if(kept_, is_one_with);
  kept_.insert(std::ranges::find_if_not(kept_, longer), std::move(pause));
  if (kept_.size() > most_) kept_.pop_back();
}

void WorstPauses::lose(const DomainLife& domain, const Loss& loss) {
  for (PauseAnatomy& pause : kept_) {
    const bool meanwhile = loss.to_ns >= pause.begin_ns && loss.from_ns <= pause.end_ns;
    if (pause.domain.process != domain.process || pause.domain.domain == domain.domain || !meanwhile) continue;
    pause.lose(domain.domain);
    for (const PauseSection& part : pause.sections) {
      if (loss.from_ns <= part.section->end_ns()) part.section->lose(domain.domain, loss);
    }
  }
}

std::vector<const PauseAnatomy*> WorstPauses::worst() const {
  std::vector<const PauseAnatomy*> worst;
  for (std::size_t i = 0; i < std::min(top_, kept_.size()); ++i) worst.push_back(&kept_[i]);
  return worst;
}

}  // namespace rtev
