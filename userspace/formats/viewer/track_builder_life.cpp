// SPDX-License-Identifier: MIT
// TrackBuilder: processes and threads that begin and end, and scheduler events.
#include <algorithm>

#include "formats/viewer/track_builder.hpp"

namespace rtev {
namespace {

/// The tracks of an ended process are kept this long, because its threads leave their CPUs later.
constexpr std::uint64_t grace_ns = 1'000'000'000;

}  // namespace

void TrackBuilder::process_event(const EventContext& context) {
  const auto record = context.batch.payload_as<ProcessRecord>(context.event);
  if (!record) {
    writer_.malformed(context);
    return;
  }
  const ProcessInfo& info = context.registry.process(record->process);
  tracks_.name_process(info.pid, info.comm);
  writer_.process(tracks_.main_thread(record->process, info.pid), context, *record);
  if (static_cast<ProcessAction>(context.event.id) != ProcessAction::exit) return;
  end_image(record->process, context.event.time, context.registry, SpanMark::exited);
  threads_.forget_domains(info.pid);
  ended_.push_back({.time = context.event.time, .process = record->process, .pid = info.pid});
}

void TrackBuilder::sched_switch(const EventContext& context) {
  const auto change = context.batch.payload_as<SchedSwitch>(context.event);
  if (!change) {
    writer_.malformed(context);
    return;
  }
  tracks_.make_room();
  const Track* const prev = tracks_.thread(change->prev);
  const Track* const next = tracks_.thread(change->next);
  threads_.add(in_order(context.event.time), *change);
  writer_.sched_switch(context, *change, prev, next);
  if (prev != nullptr && change->state == LeftState::dead && change->prev.tid != change->prev.pid)
    tracks_.forget(*prev);
}

void TrackBuilder::wakeup(const EventContext& context) {
  const auto record = context.batch.payload_as<Wakeup>(context.event);
  if (!record) {
    writer_.malformed(context);
    return;
  }
  tracks_.make_room();
  const Track* const woken = tracks_.thread(record->woken);
  const Track* const by = tracks_.thread(record->by);
  threads_.add(in_order(context.event.time), *record);
  writer_.wakeup(context, *record, woken, by);
}

void TrackBuilder::on_thread_interval(const ThreadInterval& interval) {
  if (const Track* const track = tracks_.find(interval.pid, interval.tid)) writer_.thread_interval(*track, interval);
}

void TrackBuilder::on_cpu_interval(const CpuInterval& interval) {
  const Thread& first = interval.first;
  const bool is_whole = first.tid == interval.last.tid && !interval.left_unseen;
  if (interval.last.tid != 0 && !is_whole) writer_.entered_unseen(interval.end_ns, interval.cpu, interval.last);
  // The tracker has no intervals of threads that are not traced.
  const Track* const track = is_whole && !first.tracked ? tracks_.find(first.pid, first.tid) : nullptr;
  if (track == nullptr || interval.begin_ns == interval.end_ns) return;
  writer_.thread_interval(*track, {.pid = first.pid,
                                   .tid = first.tid,
                                   .state = ThreadState::on_cpu,
                                   .first_state = ThreadState::on_cpu,
                                   .begin_ns = interval.begin_ns,
                                   .end_ns = interval.end_ns,
                                   .cpu = static_cast<std::int32_t>(interval.cpu & INT32_MAX)});
}

void TrackBuilder::on_left_unseen(std::uint32_t cpu, const RunningThread& running, std::uint64_t time_ns) {
  if (const Track* const track = tracks_.find(running.thread.pid, running.thread.tid))
    writer_.left_cpu(time_ns, cpu, *track);
}

/// The next switches say where threads were meanwhile.
void TrackBuilder::dropped(const EventContext& context) {
  if (const auto loss = context.batch.payload_as<Loss>(context.event)) {
    writer_.dropped(context, *loss);
  } else {
    writer_.malformed(context);
  }
}

void TrackBuilder::end_image(ProcessIndex index, std::uint64_t time, const Registry& registry, SpanMark mark) {
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

void TrackBuilder::forget_ended(std::uint64_t now, const Registry& registry) {
  for (; !ended_.empty() && ended_.front().time + grace_ns < now; ended_.pop_front()) {
    end_image(ended_.front().process, now, registry, SpanMark::exited);
    const bool lives_again = std::ranges::any_of(
        processes_, [&](const auto& process) { return registry.process(process.first).pid == ended_.front().pid; });
    if (!lives_again) tracks_.forget_process(ended_.front().pid);
  }
}

/// Drops all references to a track before it is removed.
void TrackBuilder::forget(const Track& track) {
  if (track.is_thread) threads_.forget_thread(track.tid, now_);
  owners_.erase(track.id);
  const auto process = processes_.find(track.process);
  if (process == processes_.end()) return;
  for (const std::uint32_t source : process->second.sources) {
    const auto found = rings_.find(source);
    if (found == rings_.end()) continue;
    Ring& ring = *found->second;
    for (const auto& stack : ring.stacks) {
      if (stack->track != &track) continue;
      for (; !stack->open.empty(); stack->open.pop()) {
        if (is_phase(stack->open.innermost())) --ring.open_phases;
        writer_.close(track, std::max(now_, stack->open.innermost().time), stack->open.innermost(), *registry_,
                      SpanMark::exited);
      }
      if (ring.current == stack.get()) ring.current = nullptr;
      if (ring.phases == stack.get()) ring.phases = nullptr;
    }
    std::erase_if(ring.stacks, [&](const auto& stack) { return stack->track == &track; });
  }
}

void TrackBuilder::finish(std::uint64_t end_ns, const Registry& registry) {
  const std::uint64_t end = std::max(end_ns, now_);
  for (const auto& [source, ring] : rings_) close_all(*ring, end, registry, SpanMark::cut);
  threads_.finish(end);
}

}  // namespace rtev
