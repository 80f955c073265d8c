// SPDX-License-Identifier: MIT
#include "formats/viewer/cpus.hpp"

#include <algorithm>

namespace rtev {

void Cpus::before(std::uint64_t time, const SchedSwitch& change, const Track* prev, const Track* next) {
  if (const auto occupant = cpus_.find(change.cpu); occupant != cpus_.end() && occupant->second.track != prev)
    vacate(change.cpu, time);
  for (const Track* const track : {prev, next}) {
    if (track == nullptr) continue;
    const auto elsewhere = on_.find(track->id);
    if (elsewhere != on_.end() && (elsewhere->second != change.cpu || track == next)) vacate(elsewhere->second, time);
  }
  if (prev != nullptr) on_.erase(prev->id);
  cpus_.erase(change.cpu);
  if (next == nullptr) return;
  cpus_[change.cpu] = {.track = next, .since = time, .tracked = change.next.tracked};
  on_[next->id] = change.cpu;
}

/// The leaving of a thread was not seen. Of a traced one it was dropped, so it ran on for some time; of others it is
/// never told when they make way for a third, so nothing but that they ran at all is known.
void Cpus::vacate(std::uint32_t cpu, std::uint64_t time) {
  const auto occupant = cpus_.find(cpu);
  if (occupant == cpus_.end()) return;
  const auto& [track, since, tracked] = occupant->second;
  writer_.left_cpu(tracked ? std::max(time, since) : since, cpu, *track);
  on_.erase(track->id);
  cpus_.erase(occupant);
}

void Cpus::forget(const Track& track, std::uint64_t time) {
  if (const auto on = on_.find(track.id); on != on_.end()) vacate(on->second, time);
}

void Cpus::finish(std::uint64_t time) {
  while (!cpus_.empty()) vacate(cpus_.begin()->first, time);
}

}  // namespace rtev
