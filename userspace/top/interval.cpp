// SPDX-License-Identifier: MIT
#include "top/interval.hpp"

#include <algorithm>

namespace rtev::top {

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
  std::size_t bytes = sizeof(Interval) + worst.size() + processes.size() * sizeof(ProcessFigures);
  for (const ProcessDetails& process : details) {
    bytes += sizeof(ProcessDetails) + process.causes.size() * cause_bytes + process.worst.size() +
             process.domains.size() * sizeof(DomainDetails) + process.spans.size() * sizeof(SpanDetails);
  }
  return bytes;
}

}  // namespace rtev::top
