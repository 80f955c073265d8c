// SPDX-License-Identifier: MIT
// How processes and threads come and go on a drawing.
#include <algorithm>

#include "formats/viewer/track_builder.hpp"

namespace rtev {
namespace {

/// How long the tracks of an ended process are kept, for its threads leave their cpus after it ended.
constexpr std::uint64_t grace_ns = 1'000'000'000;

}  // namespace

void Drawing::process_event(const Moment& moment) {
  const auto record = moment.batch.payload_as<ProcessRecord>(moment.event);
  if (!record) {
    canvas_.malformed(moment);
    return;
  }
  const ProcessInfo& facts = moment.registry.process(record->process);
  tracks_.name_process(facts.pid, facts.comm);
  canvas_.process(tracks_.main_thread(record->process, facts.pid), moment, *record);
  if (static_cast<ProcessAction>(moment.event.id) != ProcessAction::exit) return;
  end_image(record->process, moment.event.time, moment.registry, SpanMark::exited);
  threads_.forget(facts.pid);
  ended_.push_back({.time = moment.event.time, .process = record->process, .pid = facts.pid});
}

void Drawing::sched_switch(const Moment& moment) {
  const auto change = moment.batch.payload_as<SchedSwitch>(moment.event);
  if (!change) {
    canvas_.malformed(moment);
    return;
  }
  threads_.add(moment.event.time, *change);
  tracks_.make_room();
  const Track* const prev = tracks_.thread(change->prev);
  const Track* const next = tracks_.thread(change->next);
  cpus_.before(moment.event.time, *change, prev, next);
  canvas_.sched_switch(moment, *change, prev, next);
  if (prev != nullptr && change->state == LeftState::dead && change->prev.tid != change->prev.pid)
    tracks_.forget(*prev);
}

void Drawing::wakeup(const Moment& moment) {
  const auto record = moment.batch.payload_as<Wakeup>(moment.event);
  if (!record) {
    canvas_.malformed(moment);
    return;
  }
  tracks_.make_room();
  const Track* const woken = tracks_.thread(record->woken);
  const Track* const by = tracks_.thread(record->by);
  canvas_.wakeup(moment, *record, woken, by);
}

/// Where threads were then is told by what follows: see Cpus.
void Drawing::dropped(const Moment& moment) {
  if (const auto loss = moment.batch.payload_as<Loss>(moment.event)) {
    canvas_.dropped(moment, *loss);
  } else {
    canvas_.malformed(moment);
  }
}

void Drawing::end_image(ProcessIndex index, std::uint64_t time, const Registry& registry, SpanMark mark) {
  const auto process = processes_.find(index);
  if (process == processes_.end()) return;
  for (const std::uint32_t source : process->second.sources) {
    const auto ring = rings_.find(source);
    if (ring == rings_.end() || ring->second->process != index) continue;
    close_all(*ring->second, std::max(time, ring->second->newest), registry, mark);
    disown(*ring->second);
    recent_[source % recent_.size()] = {};
    rings_.erase(ring);
  }
  processes_.erase(process);
}

void Drawing::forget_ended(std::uint64_t now, const Registry& registry) {
  for (; !ended_.empty() && ended_.front().time + grace_ns < now; ended_.pop_front()) {
    end_image(ended_.front().process, now, registry, SpanMark::exited);
    const bool lives_again = std::ranges::any_of(
        processes_, [&](const auto& process) { return registry.process(process.first).pid == ended_.front().pid; });
    if (!lives_again) tracks_.forget_process(ended_.front().pid);
  }
}

/// Nothing may refer to a track that is about to go.
void Drawing::forget(const Track& track) {
  cpus_.forget(track, now_);
  owners_.erase(track.id);
  const auto process = processes_.find(track.process);
  if (process == processes_.end()) return;
  for (const std::uint32_t source : process->second.sources) {
    const auto found = rings_.find(source);
    if (found == rings_.end()) continue;
    Ring& ring = *found->second;
    for (const auto& stack : ring.stacks) {
      if (stack->track != &track) continue;
      for (; !stack->open.empty(); stack->open.pop_back()) {
        if (is_phase(stack->open.back())) --ring.open_phases;
        canvas_.close(track, std::max(now_, stack->open.back().time), stack->open.back(), *registry_, SpanMark::exited);
      }
      if (ring.current == stack.get()) ring.current = nullptr;
      if (ring.phases == stack.get()) ring.phases = nullptr;
    }
    std::erase_if(ring.stacks, [&](const auto& stack) { return stack->track == &track; });
  }
}

void Drawing::finish(std::uint64_t end_ns, const Registry& registry) {
  const std::uint64_t end = std::max(end_ns, now_);
  for (const auto& [source, ring] : rings_) close_all(*ring, end, registry, SpanMark::cut);
  cpus_.finish(end);
}

}  // namespace rtev
