// SPDX-License-Identifier: MIT
#include "analysis/utilization/mutator_utilization.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rtev {

void WindowUtilization::add(std::uint64_t ns, std::uint64_t paused_from_ns, std::uint64_t paused_to_ns) {
  if (ns == 0) return;
  is_known_ = true;
  const auto [low, high] = std::minmax(paused_from_ns, paused_to_ns);
  if (high == 0) {
    no_pause_ns_ += ns;
    return;
  }
  const std::size_t first = part_of(low >> unit_bits_), last = part_of(high >> unit_bits_);
  if (first == last) {
    positions_ns_[first] += ns;
    return;
  }
  // The value changes as fast as time passes: as long as it is in a part, so much time passes.
  std::uint64_t from = low;
  for (std::size_t part = first; part <= last; ++part) {
    const std::uint64_t to = part == last ? high : end_of(part) << unit_bits_;
    positions_ns_[part] += to - from;
    from = to;
  }
}

std::size_t WindowUtilization::part_of(std::uint64_t units) {
  const int halvings = std::max(static_cast<int>(std::bit_width(units)) - 7, 0);
  return static_cast<std::size_t>(64 * halvings) + static_cast<std::size_t>(units >> halvings);
}

std::uint64_t WindowUtilization::end_of(std::size_t part) {
  const std::size_t halvings = part < 128 ? 0 : part / 64 - 1;
  return static_cast<std::uint64_t>(part - 64 * halvings + 1) << halvings;
}

void WindowUtilization::note_worst(std::uint64_t begin_ns, std::uint64_t paused_ns, const DomainLife& domain) {
  if (paused_ns <= worst_paused_ns_ && worst_domain_.process != 0) return;
  worst_paused_ns_ = paused_ns;
  worst_begin_ns_ = begin_ns;
  worst_domain_ = domain;
}

double WindowUtilization::percentile(double percent) const {
  std::uint64_t all = no_pause_ns_;
  for (const std::uint64_t ns : positions_ns_) all += ns;
  // From the worst on, so many may be worse.
  const double worse = static_cast<double>(all) * (1 - percent / 100);
  std::uint64_t seen = 0;
  for (std::size_t part = positions_ns_.size(); part-- > 0;) {
    seen += positions_ns_[part];
    if (static_cast<double>(seen) <= worse) continue;
    return std::max(share(std::min(end_of(part) << unit_bits_, length_ns_)), least());
  }
  return 1;
}

MutatorUtilization::MutatorUtilization(std::size_t max_pauses) : max_pauses_(max_pauses) {
  for (const std::uint64_t length : lengths_ns) windows_.emplace_back(length);
}

MutatorUtilization::Domain* MutatorUtilization::find(const DomainLife& life) {
  const auto found = domains_.find(life.key());
  return found != domains_.end() ? &found->second : nullptr;
}

void MutatorUtilization::begin_domain(const DomainLife& life, std::uint64_t time_ns, bool is_certain) {
  if (domains_.size() >= max_domains && !domains_.contains(life.key())) return;
  Domain& domain = domains_[life.key()];
  domain = {.life = life, .is_certain = is_certain, .first_number = domain.first_number};
  restart(domain, time_ns);
}

void MutatorUtilization::end_domain(const DomainLife& life, std::uint64_t time_ns) {
  Domain* const domain = find(life);
  if (domain == nullptr) return;
  if (domain->is_certain) advance(*domain, time_ns);
  domains_.erase(life.key());
}

void MutatorUtilization::begin_pause(const DomainLife& life, std::uint64_t begin_ns) {
  if (Domain* const domain = find(life)) domain->open_ns = begin_ns;
}

void MutatorUtilization::add_pause(const DomainLife& life, std::uint64_t begin_ns, std::uint64_t end_ns) {
  Domain* const domain = find(life);
  if (domain == nullptr) return;
  domain->open_ns.reset();
  if (!domain->is_certain) {
    restart(*domain, begin_ns);
    domain->is_certain = true;
  }
  // A program's clock may go back.
  begin_ns = std::max(begin_ns, domain->known_until_ns);
  if (end_ns <= begin_ns) return;
  domain->pauses.push_back({begin_ns, end_ns});
  advance(*domain, end_ns);
  domain->paused_ns += end_ns - begin_ns;
  for (std::size_t i = 0; i < windows_.size(); ++i)
    windows_[i].add_paused(end_ns - begin_ns, domain->windows[i].was_whole);
  forget_old(*domain);
}

void MutatorUtilization::lose(const DomainLife& life, std::uint64_t from_ns) {
  Domain* const domain = find(life);
  if (domain == nullptr || !domain->is_certain) return;
  advance(*domain, from_ns);
  domain->is_certain = false;
  domain->open_ns.reset();
}

std::vector<WindowUtilization> MutatorUtilization::windows_at(std::uint64_t now_ns) const {
  MutatorUtilization copy = *this;
  for (auto& [key, domain] : copy.domains_) {
    if (domain.is_certain) copy.advance(domain, std::min(now_ns, domain.open_ns.value_or(now_ns)));
  }
  return copy.windows_;
}

void MutatorUtilization::restart(Domain& domain, std::uint64_t time_ns) {
  domain.first_number += domain.pauses.size();
  domain.pauses.clear();
  domain.known_until_ns = time_ns;
  for (Window& window : domain.windows) restart(window, time_ns, domain.first_number);
}

void MutatorUtilization::restart(Window& window, std::uint64_t time_ns, std::uint64_t next_pause) {
  window = {
      .from_ns = time_ns, .end_ns = time_ns, .first = next_pause, .last = next_pause, .was_whole = window.was_whole};
}

void MutatorUtilization::advance(Domain& domain, std::uint64_t time_ns) {
  if (time_ns <= domain.known_until_ns) return;
  for (std::size_t i = 0; i < windows_.size(); ++i) move(domain, domain.windows[i], windows_[i], time_ns);
  domain.known_until_ns = time_ns;
}

/// Lets the end of the window go to a time, in steps between which neither its end nor its begin meets the edge of a
/// pause.
void MutatorUtilization::move(const Domain& domain, Window& window, WindowUtilization& result, std::uint64_t time_ns) {
  constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  struct Edge {
    bool is_paused = false;
    std::uint64_t changes_ns = never;
  };
  const auto edge_at = [&](std::uint64_t& number, std::uint64_t at_ns) {
    const auto pause_at = [&] { return static_cast<std::size_t>(number - domain.first_number); };
    while (pause_at() < domain.pauses.size() && domain.pauses[pause_at()].end_ns <= at_ns) ++number;
    if (pause_at() == domain.pauses.size()) return Edge{};
    const Pause& pause = domain.pauses[pause_at()];
    return pause.begin_ns <= at_ns ? Edge{true, pause.end_ns} : Edge{false, pause.begin_ns};
  };
  const std::uint64_t length = result.length_ns(), whole_ns = window.from_ns + length;
  while (window.end_ns < time_ns) {
    const Edge end = edge_at(window.last, window.end_ns);
    std::uint64_t next = std::min(time_ns, end.changes_ns);
    bool leaves_pause = false;
    if (window.end_ns >= whole_ns) {
      const Edge begin = edge_at(window.first, window.end_ns - length);
      leaves_pause = begin.is_paused;
      if (begin.changes_ns != never) next = std::min(next, begin.changes_ns + length);
    } else {
      next = std::min(next, whole_ns);
    }
    const std::uint64_t ns = next - window.end_ns, before = window.paused_ns;
    if (end.is_paused) window.paused_ns += ns;
    if (leaves_pause) window.paused_ns -= ns;
    if (window.end_ns >= whole_ns) result.add(ns, before, window.paused_ns);
    window.end_ns = next;
    if (window.end_ns >= whole_ns && !std::exchange(window.was_whole, true)) result.lengthen(domain.paused_ns);
    if (window.end_ns >= whole_ns) result.note_worst(window.end_ns - length, window.paused_ns, domain.life);
  }
}

/// Pauses that no window has any more. A window that needs more of them than there may be begins anew.
void MutatorUtilization::forget_old(Domain& domain) {
  const std::size_t most = std::max(max_pauses_ / domains_.size(), min_pauses_of_domain);
  if (domain.pauses.size() > most) {
    const std::uint64_t kept = domain.first_number + domain.pauses.size() - most / 2;
    const std::uint64_t now_ns = domain.known_until_ns, next = domain.first_number + domain.pauses.size();
    for (Window& window : domain.windows)
      if (window.first < kept) restart(window, now_ns, next);
  }
  const std::uint64_t needed = std::ranges::min(domain.windows, {}, &Window::first).first;
  while (domain.first_number < needed) {
    domain.pauses.pop_front();
    ++domain.first_number;
  }
}

}  // namespace rtev
