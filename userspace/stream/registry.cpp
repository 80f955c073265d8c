// SPDX-License-Identifier: MIT
#include "stream/registry.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

ProcessInfo make_nobody() {
  ProcessInfo nobody;
  nobody.ended = true;
  return nobody;
}

/// What the program's symbols say stands: it may have a ring of OCaml's runtime as well.
void note_producer(ProcessInfo& facts, const std::optional<Producer>& producer) {
  facts.runtime = producer ? producer->name : ocaml_runtime;
  if (!producer || facts.family_source == FamilySource::forced || facts.family_source == FamilySource::symbols) return;
  facts.family = producer->family;
  facts.family_source = FamilySource::producer;
}

}  // namespace

std::string_view to_string(Family family) {
  return family == Family::before_5_3 ? "5.0-5.2" : "5.3+";
}

std::string_view to_string(RingState state) {
  switch (state) {
    case RingState::none:
      return "none";
    case RingState::active:
      return "active";
    case RingState::paused:
      return "paused";
    case RingState::stopped:
      return "stopped";
    case RingState::truncated:
      return "truncated";
    case RingState::shared:
      return "shared";
    case RingState::probed:
      return "probed";
    case RingState::ended:
      return "ended";
  }
  return "unknown";
}

RingState after_end(RingState state) {
  return state == RingState::active || state == RingState::paused ? RingState::ended : state;
}

std::string_view to_string(FamilySource source) {
  switch (source) {
    case FamilySource::assumed:
      return "assumed";
    case FamilySource::symbols:
      return "symbols";
    case FamilySource::ring:
      return "ring";
    case FamilySource::producer:
      return "producer";
    case FamilySource::forced:
      return "forced";
  }
  return "unknown";
}

ProcessIndex Registry::add_process(ProcessInfo facts) {
  const ProcessIndex index = next_index_++;
  processes_.emplace_hint(processes_.end(), index, Entry{.facts = std::move(facts)});
  return index;
}

ProcessInfo& Registry::process(ProcessIndex index) {
  if (const auto found = processes_.find(index); found != processes_.end()) return found->second.facts;
  return nobody_ = make_nobody();
}

const ProcessInfo& Registry::process(ProcessIndex index) const {
  static const ProcessInfo nobody = make_nobody();
  const auto found = processes_.find(index);
  return found != processes_.end() ? found->second.facts : nobody;
}

void Registry::retire_process(ProcessIndex index) {
  const auto found = processes_.find(index);
  if (found == processes_.end() || std::exchange(found->second.retired, true)) return;
  if (found->second.rings == 0) remember_retired(index);
}

void Registry::remember_retired(ProcessIndex index) {
  retired_.push_back(index);
  if (retired_.size() <= remembered) return;
  const auto oldest = processes_.find(retired_.front());
  retired_.pop_front();
  ++others_.count;
  others_.words += oldest->second.facts.words;
  processes_.erase(oldest);
}

std::uint32_t Registry::add_ring(RingInfo facts) {
  std::uint32_t slot = 0;
  if (rings_.size() < ring_slots) {
    slot = static_cast<std::uint32_t>(rings_.size());
    rings_.emplace_back();
  } else if (!free_slots_.empty()) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else {
    return 0;
  }
  if (const auto owner = processes_.find(facts.process); owner != processes_.end())
    note_producer(owner->second.facts, facts.producer);
  place_ring(slot, std::move(facts));
  return slot;
}

void Registry::place_ring(std::uint32_t slot, RingInfo facts) {
  const ProcessIndex index = facts.process;
  const auto owner = processes_.find(index);
  if (owner != processes_.end()) ++owner->second.rings;
  rings_[slot] = Ring{std::move(facts), index, owner != processes_.end() ? &owner->second : nullptr};
}

std::optional<Family> Registry::family_of(const Event& event) const {
  const ProcessInfo* const process = process_of(event);
  if (process == nullptr) return std::nullopt;
  const auto& producer = ring(Source::unpack(event.source).slot)->producer;
  return producer && process->family_source != FamilySource::forced ? producer->family : process->family;
}

const RingInfo* Registry::ring(std::uint32_t slot) const {
  return slot < rings_.size() && rings_[slot] ? &rings_[slot]->facts : nullptr;
}

void Registry::remove_ring(std::uint32_t slot) {
  if (!ring(slot)) return;
  const Ring removed = *std::exchange(rings_[slot], std::nullopt);
  free_slots_.push_back(slot);
  if (removed.owner && --removed.owner->rings == 0 && removed.owner->retired) remember_retired(removed.index);
}

void Registry::restore_process(ProcessIndex index, ProcessInfo facts) {
  const auto entry = processes_.try_emplace(index).first;
  revive(index);
  entry->second.facts = std::move(facts);
  next_index_ = std::max(next_index_, index + 1);
}

void Registry::restore_ring(std::uint32_t slot, RingInfo facts) {
  if (slot >= rings_.size()) rings_.resize(slot + 1);
  revive(facts.process);
  remove_ring(slot);
  free_slots_.clear();  // the file says which slots are used
  place_ring(slot, std::move(facts));
}

/// A process that is mentioned again must not be folded into others().
void Registry::revive(ProcessIndex index) {
  const auto found = processes_.find(index);
  if (found == processes_.end() || !std::exchange(found->second.retired, false)) return;
  std::erase(retired_, index);
}

void Registry::restore_list(std::map<ProcessIndex, ProcessInfo> list, const Others& others) {
  for (std::uint32_t slot = 0; slot < rings_.size(); ++slot) {
    if (rings_[slot] && !list.contains(rings_[slot]->index)) remove_ring(slot);
  }
  std::erase_if(processes_, [&](const auto& process) { return !list.contains(process.first); });
  retired_.clear();
  for (auto& [index, facts] : list) restore_process(index, std::move(facts));
  others_ = others;
}

std::string_view known_name_of(const Event& event, const Registry& registry) {
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::end: {
      const auto family = registry.family_of(event);
      return family ? phase_name(*family, event.id) : std::string_view{};
    }
    case EventKind::counter: {
      const auto family = registry.family_of(event);
      return family ? counter_name(*family, event.id) : std::string_view{};
    }
    case EventKind::lifecycle:
      return lifecycle_name(event.id);
    case EventKind::user_unit:
    case EventKind::user_int:
    case EventKind::user_begin:
    case EventKind::user_end:
    case EventKind::user_custom: {
      const RingInfo* ring = registry.ring(Source::unpack(event.source).slot);
      return ring && ring->user_event_name ? ring->user_event_name(event.id) : std::string_view{};
    }
    case EventKind::process:
      return to_string(static_cast<ProcessAction>(event.id));
    case EventKind::alloc:
    case EventKind::lost:
    case EventKind::sched_switch:
    case EventKind::wakeup:
      return to_string(event.kind);
  }
  return {};
}

std::string_view name_of(const Event& event, const Registry& registry, std::string& scratch) {
  const std::string_view known = known_name_of(event, registry);
  if (!known.empty()) return known;
  scratch = '#' + std::to_string(event.id);
  return scratch;
}

}  // namespace rtev
