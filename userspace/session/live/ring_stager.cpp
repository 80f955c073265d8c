// SPDX-License-Identifier: MIT
#include "session/live/ring_stager.hpp"

#include <algorithm>
#include <iterator>

namespace rtev {

void RingStager::add(std::uint32_t slot) {
  if (!registry_.ring(slot)->producer) undecided_.insert(slot);
}

void RingStager::stage(const Batch& batch) {
  if (undecided_.contains(Source::unpack(batch.events().front().source).slot)) find_family(batch);
  find_stop(batch);
  if (unused_.none()) return timeline_.push(batch);
  used_.clear();
  std::ranges::copy_if(batch.events(), std::back_inserter(used_),
                       [this](const Event& event) { return !unused_[static_cast<std::size_t>(event.kind)]; });
  timeline_.push(Batch(used_, batch.payloads()));
}

void RingStager::find_family(const Batch& batch) {
  const std::uint32_t slot = Source::unpack(batch.events().front().source).slot;
  ProcessInfo& info = registry_.process(registry_.ring(slot)->process);
  FamilyGuess guess;
  for (const Event& event : batch.events()) guess.add(event);
  if (info.family_source == FamilySource::assumed && guess.family()) {
    info.family = *guess.family();
    info.family_source = FamilySource::ring;
  }
  if (info.family_source != FamilySource::assumed) undecided_.erase(slot);
}

/// The ring has an event of its own end. The uprobe that reports it, too, may have been attached too late.
void RingStager::find_stop(const Batch& batch) {
  for (const Event& event : batch.events()) {
    if (!is_lifecycle(event, Lifecycle::ring_stop)) continue;
    const RingInfo* const ring = registry_.ring(Source::unpack(event.source).slot);
    if (ring == nullptr) return;
    RingState& state = registry_.process(ring->process).ring;
    if (state == RingState::stopped || state == RingState::shared) return;
    state = RingState::stopped;
    on_stop_(event.time, ring->process);
  }
}

}  // namespace rtev
