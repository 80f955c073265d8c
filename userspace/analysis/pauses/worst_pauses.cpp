// SPDX-License-Identifier: MIT
#include "analysis/pauses/worst_pauses.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

namespace rtev {
namespace {

/// The section that a pause spent the most time in; 0: it took part in none.
std::uint64_t main_section(const PauseDetails& pause) {
  if (pause.sections.empty()) return 0;
  return std::ranges::max_element(pause.sections, {}, &PauseSection::time_ns)->section->id;
}

bool shows(const PauseDetails& pause, std::uint64_t section) {
  return std::ranges::any_of(pause.sections, [&](const PauseSection& part) { return part.section->id == section; });
}

}  // namespace

void WorstPauses::add(PauseDetails&& pause) {
  const auto shorter = [&](const Kept& other) { return other.pause.duration_ns() < pause.duration_ns(); };
  const auto place = std::ranges::find_if(kept_, shorter);
  kept_.insert(place, {.pause = std::move(pause)});
  regroup();
  if (kept_.size() - listed_ > folded_per_listed * max_listed_) forget_one();
  // A section is shown with its longest pause, so the shortest pauses represent no other that stays.
  for (; listed_ > max_listed_; kept_.pop_back()) listed_ -= kept_.back().shown_by == 0 ? 1 : 0;
}

/// Says anew who is listed: longest first, as only those that are listed show others.
void WorstPauses::regroup() {
  std::unordered_set<std::uint64_t> shown;
  listed_ = 0;
  for (Kept& kept : kept_) {
    const std::uint64_t section = main_section(kept.pause);
    kept.shown_by = !kept.stays && shown.contains(section) ? section : 0;
    if (kept.shown_by != 0) continue;
    ++listed_;
    for (const PauseSection& part : kept.pause.sections) shown.insert(part.section->id);
  }
}

/// Of those that others show the oldest: hardly any of its sections goes on.
void WorstPauses::forget_one() {
  const auto age = [](const Kept& kept) { return kept.shown_by == 0 ? UINT64_MAX : kept.pause.end_ns; };
  const auto oldest = std::ranges::min_element(kept_, {}, age);
  const auto shows_it = [&](const Kept& kept) { return kept.shown_by == 0 && shows(kept.pause, oldest->shown_by); };
  std::ranges::find_if(kept_, shows_it)->stays = true;
  kept_.erase(oldest);
}

void WorstPauses::lose(const DomainLife& domain, const Loss& loss) {
  for (Kept& kept : kept_) kept.pause.lose(domain, loss);
}

std::vector<const PauseDetails*> WorstPauses::worst() const {
  std::vector<const PauseDetails*> worst;
  for (const Kept& kept : kept_) {
    if (worst.size() == top_) break;
    if (kept.shown_by == 0) worst.push_back(&kept.pause);
  }
  return worst;
}

std::uint64_t WorstPauses::represented(std::uint64_t min_ns) const {
  const auto worst = this->worst();
  std::set<std::tuple<ProcessIndex, std::uint16_t, std::uint64_t>> beside;
  for (const PauseDetails* const pause : worst) {
    for (const PauseSection& part : pause->sections) {
      for (const StwDomain& domain : part.section->domains) {
        if (domain.pause_begin_ns != 0 && domain.pause_ns >= min_ns)
          beside.emplace(pause->domain.process, domain.domain, domain.pause_begin_ns);
      }
    }
  }
  for (const PauseDetails* const pause : worst)
    beside.erase({pause->domain.process, pause->domain.domain, pause->begin_ns});
  return beside.size();
}

}  // namespace rtev
