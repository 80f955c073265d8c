// SPDX-License-Identifier: MIT
#include "analysis/pauses/stop_the_world.hpp"

#include <algorithm>

namespace rtev {
namespace {

const StwDomain* latest(const std::vector<StwDomain>& domains, std::uint64_t StwDomain::* time) {
  if (domains.size() < 2) return nullptr;
  const auto last = std::ranges::max_element(domains, {}, time);
  return *last.*time == 0 ? nullptr : &*last;
}

}  // namespace

const StwDomain* StwSection::last_to_arrive() const {
  return has_barrier ? latest(domains, &StwDomain::arrived_ns) : nullptr;
}

const StwDomain* StwSection::last_to_end_minor() const {
  return latest(domains, &StwDomain::minor_end_ns);
}

std::uint64_t StwSection::end_ns() const {
  std::uint64_t end = begin_ns;
  for (const StwDomain& domain : domains) end = std::max({end, domain.arrived_ns, domain.left_ns});
  return end;
}

void StwSection::lose(std::uint16_t domain, const Loss& loss) {
  const auto part = std::ranges::find(domains, domain, &StwDomain::domain);
  const bool is_complete = part != domains.end() && part->left_ns != 0;
  if (is_complete || loss.to_ns < begin_ns || lost_domains.size() >= max_domains) return;
  // A loss after a domain has left the section does not concern it.
  const bool may_concern = part != domains.end() || std::ranges::none_of(domains, [&](const StwDomain& other) {
                             return other.left_ns != 0 && other.left_ns < loss.from_ns;
                           });
  if (may_concern && std::ranges::find(lost_domains, domain) == lost_domains.end()) lost_domains.push_back(domain);
}

std::optional<StopTheWorld::Part> StopTheWorld::lead(ProcessIndex process, std::uint16_t domain,
                                                     std::uint64_t time_ns) {
  auto& section = begin(process, time_ns);
  section->leader_seen = true;
  return take_part(section, {.domain = domain, .leads = true, .joined_ns = time_ns, .arrived_ns = time_ns});
}

std::optional<StopTheWorld::Part> StopTheWorld::join(ProcessIndex process, Family family, std::uint16_t domain,
                                                     std::uint64_t time_ns) {
  auto section = current(process);
  // A domain takes part once, and none passes the barrier before all have arrived: else the leader of a later section
  // was not seen. Before OCaml 5.3 a domain counted as arrived shortly before its handler began.
  const auto is_over = [&](const StwDomain& other) {
    return other.domain == domain || (family == Family::since_5_3 && other.passed_ns != 0 && other.passed_ns < time_ns);
  };
  if (!section || std::ranges::any_of(section->domains, is_over)) section = begin(process, time_ns);
  return take_part(section, {.domain = domain, .joined_ns = time_ns, .arrived_ns = time_ns});
}

std::shared_ptr<StwSection> StopTheWorld::current(ProcessIndex process) const {
  const auto found = current_.find(process);
  return found == current_.end() ? nullptr : found->second;
}

std::shared_ptr<StwSection>& StopTheWorld::begin(ProcessIndex process, std::uint64_t time_ns) {
  // Only the parts of the present sections are not matched then.
  if (current_.size() >= max_processes) current_.clear();
  auto& section = current_[process];
  section = std::shared_ptr<StwSection>(new StwSection, [parts = parts_](const StwSection* ended) {
    *parts -= ended->domains.size();
    delete ended;
  });
  section->id = ++last_id_;
  section->process = process;
  section->begin_ns = time_ns;
  return section;
}

std::optional<StopTheWorld::Part> StopTheWorld::take_part(const std::shared_ptr<StwSection>& section,
                                                          const StwDomain& domain) {
  if (section->domains.size() >= StwSection::max_domains || *parts_ >= max_parts_) {
    ++section->unnamed;
    return std::nullopt;
  }
  ++*parts_;
  section->domains.push_back(domain);
  return Part{section, section->domains.size() - 1};
}

}  // namespace rtev
