// SPDX-License-Identifier: MIT
#include "top/interval.hpp"

#include <algorithm>

#include "base/saturating_sum.hpp"

namespace rtev::top {

void ProcessFigures::add(const ProcessFigures& other) {
  const auto add_known = [](auto& sum, const auto& known) {
    if (known) sum = sum.value_or(0) + *known;
  };
  ended &= other.ended;
  knows_phases &= other.knows_phases;
  knows_counters &= other.knows_counters;
  knows_losses &= other.knows_losses;
  if (!has_events()) events_read = other.events_read;
  processes += other.processes;
  add_known(cpu_share, other.cpu_share);
  add_known(wait_share, other.wait_share);
  // What has ended holds no heap any more.
  if (!other.ended) {
    domains += other.domains;
    add_known(heap_bytes, other.heap_bytes);
    add_known(growth, other.growth);
  }
  for (std::uint64_t ProcessFigures::* const sum :
       {&ProcessFigures::gc_ns, &ProcessFigures::domain_ns, &ProcessFigures::pauses, &ProcessFigures::sections,
        &ProcessFigures::minor_collections, &ProcessFigures::major_cycles, &ProcessFigures::allocated_bytes,
        &ProcessFigures::minor_words, &ProcessFigures::promoted_words, &ProcessFigures::events,
        &ProcessFigures::lost_words})
    this->*sum = saturating_sum(this->*sum, other.*sum);
  worst_ns = std::max(worst_ns, other.worst_ns);
  arrival_ns = std::max(arrival_ns, other.arrival_ns);
}

void ProcessFigures::set_shares() {
  gc_share = domain_ns == 0 ? 0 : static_cast<double>(gc_ns) / static_cast<double>(domain_ns);
  // A slice may promote what was allocated before.
  if (minor_words > 0)
    promoted_share = std::min(static_cast<double>(promoted_words) / static_cast<double>(minor_words), 1.0);
}

std::vector<const ProcessFigures*> Interval::rows() const {
  std::vector<const ProcessFigures*> rows;
  rows.reserve(programs.size() + processes.size());
  for (const ProcessFigures& program : programs) rows.push_back(&program);
  for (const ProcessFigures& process : processes)
    if (!std::ranges::binary_search(programs, process.program, {}, &ProcessFigures::program)) rows.push_back(&process);
  return rows;
}

std::vector<const ProcessFigures*> Interval::rows_of(std::uint32_t program) const {
  std::vector<const ProcessFigures*> rows = single_rows();
  std::erase_if(rows, [&](const ProcessFigures* process) { return process->program != program; });
  return rows;
}

std::vector<const ProcessFigures*> Interval::single_rows() const {
  std::vector<const ProcessFigures*> rows;
  rows.reserve(processes.size());
  for (const ProcessFigures& process : processes) rows.push_back(&process);
  return rows;
}

const ProcessFigures* Interval::find(ProcessIndex index) const {
  const auto found = std::ranges::lower_bound(processes, index, {}, &ProcessFigures::index);
  return found != processes.end() && found->index == index ? &*found : nullptr;
}

const ProcessDetails* Interval::details_of(ProcessIndex index) const {
  const auto found = std::ranges::find(details, index, &ProcessDetails::index);
  return found != details.end() ? &*found : nullptr;
}

std::size_t Interval::bytes() const {
  constexpr std::size_t cause_bytes = 160;
  std::size_t bytes = sizeof(Interval) + worst.size() + (processes.size() + programs.size()) * sizeof(ProcessFigures);
  for (const ProcessDetails& process : details) {
    bytes += sizeof(ProcessDetails) + process.causes.size() * cause_bytes + process.worst.size() +
             process.domains.size() * sizeof(DomainDetails) + process.spans.size() * sizeof(SpanDetails);
  }
  return bytes;
}

}  // namespace rtev::top
