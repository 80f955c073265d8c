// SPDX-License-Identifier: MIT
#include "flight/window_state.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "rtev/names.hpp"
#include "stream/span_tracker.hpp"

namespace rtev::flight {
namespace {

int wait_phase_of(const Chunk::Ring& ring, const ProcessInfo* process) {
  Family family = process != nullptr ? process->family : Family::since_5_3;
  if (ring.producer && (process == nullptr || process->family_source != FamilySource::forced))
    family = ring.producer->family;
  const auto phase = find_phase(family, "domain_condition_wait");
  return phase ? static_cast<int>(*phase) : -1;
}

}  // namespace

void WindowState::add(const Chunk& chunk) {
  begin_chunk(chunk);
  std::uint32_t last_source = UINT32_MAX;
  Slot* slot = nullptr;
  Ring* ring = nullptr;
  for (const Event& event : chunk.events) {
    if (event.source != last_source) [[unlikely]] {
      const Source source = Source::unpack(event.source);
      last_source = event.source;
      slot = source.slot != 0 && source.slot < slots_.size() ? slots_[source.slot].get() : nullptr;
      ring = nullptr;
      if (slot != nullptr) {
        if (source.domain >= slot->rings.size()) slot->rings.resize(source.domain + std::size_t{1});
        auto& known = slot->rings[source.domain];
        if (!known) known = std::make_unique<Ring>();
        ring = known.get();
      }
    }
    if (event.kind == EventKind::process) {
      add_process(event, chunk);
      last_source = UINT32_MAX;  // the slot may be gone
      continue;
    }
    if (ring == nullptr) continue;
    switch (event.kind) {
      case EventKind::begin:
      case EventKind::user_begin:
        open(*ring, event);
        break;
      case EventKind::end:
      case EventKind::user_end:
        close(*slot, *ring, event);
        break;
      case EventKind::counter:
        count(*ring, event);
        break;
      case EventKind::lifecycle:
        lifecycle(*slot, *ring, event);
        break;
      case EventKind::lost:
        clear(ring->open);
        break;
      default:
        break;
    }
  }
  // Names of what is open: a later chunk has only those of its own events.
  for (const Chunk::Name& name : chunk.names) {
    Slot* const named = name.slot < slots_.size() ? slots_[name.slot].get() : nullptr;
    if (named == nullptr) continue;
    const bool is_open = std::ranges::any_of(named->rings, [&](const auto& one) {
      return one && std::ranges::any_of(one->open, [&](const Event& event) {
               return event.kind == EventKind::user_begin && event.id == name.id;
             });
    });
    if (is_open) named->names[name.id] = name.text;
  }
  if (!chunk.figures) return;
  for (const auto& [index, user, base] : chunk.figures->changed) {
    // Their exits may have been lost.
    if (const auto known = processes_.find(index); known != processes_.end() && base.ended && !known->second.found)
      processes_.erase(known);
  }
  for (const ProcessIndex index : chunk.figures->gone) processes_.erase(index);
}

void WindowState::begin_chunk(const Chunk& chunk) {
  for (const auto& [index, info] : chunk.processes) processes_[index].info = info;
  for (const Chunk::Ring& ring : chunk.rings) {
    if (ring.slot >= slots_.size()) slots_.resize(ring.slot + std::size_t{1});
    auto& slot = slots_[ring.slot];
    if (slot && slot->info.process != ring.process) forget_slot(ring.slot);
    if (!slot) slot = std::make_unique<Slot>();
    slot->info = ring;
    const auto process = processes_.find(ring.process);
    slot->wait_phase = wait_phase_of(ring, process != processes_.end() ? process->second.info.get() : nullptr);
  }
}

void WindowState::add_process(const Event& event, const Chunk& chunk) {
  const auto record = chunk.batch().payload_as<ProcessRecord>(event);
  if (!record) return;
  switch (static_cast<ProcessAction>(event.id)) {
    case ProcessAction::found:
    case ProcessAction::exec:
    case ProcessAction::fork:
      processes_[record->process].found = true;
      break;
    case ProcessAction::ring:
    case ProcessAction::probe:
    case ProcessAction::unreadable:
      processes_[record->process].ring = {event, *record};
      break;
    case ProcessAction::pause:
    case ProcessAction::stop:
      processes_[record->process].pausing = {event, *record};
      break;
    case ProcessAction::resume:
      processes_[record->process].pausing.reset();
      // Spans may have ended meanwhile.
      for (const auto& slot : slots_) {
        if (!slot || slot->info.process != record->process) continue;
        for (const auto& ring : slot->rings)
          if (ring) clear(ring->open);
      }
      break;
    case ProcessAction::exit:
      processes_.erase(record->process);
      for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
        if (slots_[slot] && slots_[slot]->info.process == record->process) forget_slot(slot);
      break;
    case ProcessAction::enable:
      break;
  }
}

void WindowState::forget_slot(std::uint32_t slot) {
  for (const auto& ring : slots_[slot]->rings) {
    if (!ring) continue;
    clear(ring->open);
    clear(ring->counters);
  }
  slots_[slot].reset();
}

void WindowState::open(Ring& ring, const Event& event) {
  if (ring.open.size() >= max_open) {
    // For programs that begin spans and never end them. Half at once: to move all for each would take long.
    ring.open.erase(ring.open.begin(), ring.open.begin() + max_open / 2);
    kept_ -= max_open / 2;
  }
  if (kept_ >= max_kept) return;
  ring.open.push_back(event);
  ++kept_;
}

/// The end of a phase ends the phases inside it, too. User spans end by their own ends only.
void WindowState::close(const Slot& slot, Ring& ring, const Event& end) {
  const bool phase = is_phase(end);
  const auto is_same = [&](const Event& begin) { return begin.id == end.id && is_phase(begin) == phase; };
  auto& open = ring.open;
  if (!open.empty() && is_same(open.back())) [[likely]] {
    open.pop_back();
    --kept_;
    return;
  }
  const auto found = std::ranges::find_if(open.rbegin(), open.rend(), is_same);
  if (found == open.rend()) return;
  const auto nests = [&](const Event& begin) { return is_phase(begin) && begin.id != slot.wait_phase; };
  const auto at = found.base() - 1;
  const bool ends_others = phase && end.id != slot.wait_phase;
  const auto before = open.size();
  const auto first = open.erase(at);
  if (ends_others) open.erase(std::remove_if(first, open.end(), nests), open.end());
  kept_ -= before - open.size();
}

void WindowState::count(Ring& ring, const Event& event) {
  const auto last = std::ranges::find(ring.counters, event.id, &Event::id);
  if (last != ring.counters.end()) {
    *last = event;
  } else if (event.id < counter_ids && kept_ < max_kept) {
    ring.counters.push_back(event);
    ++kept_;
  }
}

void WindowState::lifecycle(Slot& slot, Ring& ring, const Event& event) {
  const auto forget = [this](Ring& one) {
    clear(one.open);
    clear(one.counters);
    one.spawned = false;
  };
  switch (static_cast<Lifecycle>(event.id)) {
    case Lifecycle::domain_spawn:
      // A new domain takes part in collections before this event.
      if (std::exchange(ring.spawned, true)) forget(ring);
      ring.spawned = true;
      break;
    case Lifecycle::domain_terminate:
      forget(ring);
      break;
    case Lifecycle::ring_start:
    case Lifecycle::ring_resume:
      for (const auto& one : slot.rings)
        if (one) clear(one->open);
      break;
    case Lifecycle::ring_stop:
      clear(ring.open);
      break;
    default:
      break;
  }
}

Chunk WindowState::as_chunk(std::uint64_t begin_ns, const std::function<bool(std::uint32_t user)>& wants) const {
  Chunk chunk{.begin_ns = begin_ns, .end_ns = begin_ns, .is_state = true};
  std::map<ProcessIndex, std::uint64_t> earliest;
  std::vector<Event> kept;
  for (const auto& slot : slots_) {
    if (!slot) continue;
    const auto process = processes_.find(slot->info.process);
    if (process == processes_.end() || !process->second.info || !wants(process->second.info->user)) continue;
    const std::size_t before = kept.size();
    for (const auto& ring : slot->rings) {
      if (!ring) continue;
      kept.insert(kept.end(), ring->open.begin(), ring->open.end());
      kept.insert(kept.end(), ring->counters.begin(), ring->counters.end());
    }
    for (const Event& event : std::span(kept).subspan(before)) {
      std::uint64_t& first = earliest.try_emplace(slot->info.process, begin_ns).first->second;
      first = std::min(first, event.time);
    }
    chunk.rings.push_back(slot->info);
    for (const auto& [id, text] : slot->names) chunk.names.push_back({.slot = slot->info.slot, .id = id, .text = text});
  }
  const auto add_record = [&](Event event, ProcessAction action, std::uint64_t time_ns, const ProcessRecord& record) {
    event.time = time_ns;
    event.flags = 0;
    event.kind = EventKind::process;
    event.id = static_cast<std::uint16_t>(action);
    event.value = Batch::payload_ref(chunk.payloads.size(), sizeof record);
    const auto bytes = std::as_bytes(std::span(&record, 1));
    chunk.payloads.insert(chunk.payloads.end(), bytes.begin(), bytes.end());
    chunk.events.push_back(event);
  };
  for (const auto& [index, process] : processes_) {
    if (!process.info || !wants(process.info->user)) continue;
    chunk.processes.emplace_back(index, process.info);
    const auto first = earliest.find(index);
    const std::uint64_t time_ns = first != earliest.end() ? first->second : begin_ns;
    const Event blank{
        .time = 0, .value = 0, .source = Source{0, lifecycle_stream}.pack(), .id = 0, .kind = {}, .flags = 0};
    if (process.found) add_record(blank, ProcessAction::found, time_ns, {.process = index, .peer = 0, .detail = 0});
    for (const auto& state : {process.ring, process.pausing})
      if (state) add_record(state->first, static_cast<ProcessAction>(state->first.id), time_ns, state->second);
  }
  chunk.events.insert(chunk.events.end(), kept.begin(), kept.end());
  std::ranges::stable_sort(chunk.events, {}, &Event::time);
  return chunk;
}

}  // namespace rtev::flight
