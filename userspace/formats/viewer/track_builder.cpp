// SPDX-License-Identifier: MIT
#include "formats/viewer/track_builder.hpp"

#include <algorithm>
#include <utility>

#include "stream/stw_phases.hpp"

namespace rtev {
namespace {

/// Spans that began before the first known event of a ring are shown at most this long before it, in ns.
constexpr std::uint64_t room_before = 1000;

/// The tracks of an ended process are kept this long, because its threads leave their CPUs later.
constexpr std::uint64_t grace_ns = 1'000'000'000;

/// Arrows of one stop-the-world section. OCaml has at most 128 domains by default.
constexpr std::size_t max_arrows = 128;

}  // namespace

TrackBuilder::~TrackBuilder() = default;

void TrackBuilder::consume(const Batch& batch, const Registry& registry) {
  ++batch_;
  registry_ = &registry;
  for (const Event& event : batch.events()) {
    now_ = std::max(now_, event.time);
    add({.event = event, .batch = batch, .registry = registry});
  }
  forget_ended(now_);
}

void TrackBuilder::add(const EventContext& context) {
  switch (context.event.kind) {
    case EventKind::process:
      return process_event(context);
    case EventKind::sched_switch:
      return sched_switch(context);
    case EventKind::wakeup:
      return wakeup(context);
    case EventKind::sample:
      return sample(context);
    case EventKind::lost:
      if (is_sched_loss(context.event)) return dropped(context);
      break;
    default:
      break;
  }
  spans_.add(context);
  tasks_.add(context);
}

/// Before an event of the ring is shown.
void TrackBuilder::prepare(Ring& ring, const EventContext& context) {
  if (ring.named != batch_) {
    ring.named = batch_;
    tracks_.name_process(ring.life.pid, context.registry.process(ring.life.process).name);
  }
  if (ring.floor == 0) begin_at(ring, context.event.time);
}

TrackBuilder::Lane* TrackBuilder::lane_for(Ring& ring, const EventContext& context) {
  prepare(ring, context);
  return &place(ring);
}

/// Where to show the next event of the ring. A phase belongs to the track of the phase around it, unless that thread
/// waits in it and another one runs the domain.
TrackBuilder::Lane& TrackBuilder::place(Ring& ring) {
  if (!waits(ring)) return *ring.phases;
  if (ring.current != nullptr && ring.threads_version == threads_.writers_version()) return *ring.current;
  ring.threads_version = threads_.writers_version();
  const DomainLife& life = ring.life;
  const auto tid = threads_.writer_of(life.pid, life.domain);
  const Track* const writer =
      tid ? &tracks_.writer(life.process, life.pid, *tid, life.domain, life.incarnation) : nullptr;
  if (writer != nullptr && own(ring, *writer)) {
    ring.current = &ring.lane(writer);
  } else if (ring.current == nullptr || ring.current->key->is_thread) {
    const auto own = std::ranges::find_if(ring.lanes, [](const auto& lane) { return !lane->key->is_thread; });
    ring.current = own != ring.lanes.end()
                       ? own->get()
                       : &ring.lane(&tracks_.ring(life.process, life.pid, life.domain, life.incarnation));
  }
  return *ring.current;
}

/// No phase is open where the last one was, or its thread waits in it without the domain's lock.
bool TrackBuilder::waits(const Ring& ring) {
  if (ring.phases == nullptr) return true;
  const auto innermost = std::ranges::find_if(ring.phases->open.rbegin(), ring.phases->open.rend(), is_phase);
  return innermost == ring.phases->open.rend() || innermost->id == StwPhases::of(ring.life.family).condition_wait;
}

/// Spans of two rings on one track would not nest. A thread writes to one ring only, but its tid may be used again.
bool TrackBuilder::own(const Ring& ring, const Track& track) {
  const auto [owner, is_first] = owners_.try_emplace(track.id, Owner{&ring, 0});
  if (owner->second.ring == nullptr) owner->second = {&ring, now_};
  return owner->second.ring == &ring;
}

/// Gives the tracks of a ring away.
void TrackBuilder::set_owner(const Ring& ring, const Ring* owner) {
  for (const auto& lane : ring.lanes) {
    if (const auto found = owners_.find(lane->key->id); found != owners_.end()) found->second.ring = owner;
  }
}

void TrackBuilder::on_begin(Ring& ring, Lane& lane, const EventContext& context) {
  if (is_phase(context.event)) ring.phases = &lane;
  writer_.begin(*lane.key, context, flows_of(ring, context.event));
}

void TrackBuilder::on_end(Ring& ring, Lane& lane, const Event& /*begin*/, const EventContext& context) {
  if (is_phase(context.event)) ring.phases = &lane;
  writer_.end(*lane.key, context);
}

/// Shows a span that began before the first known event, around all events since.
void TrackBuilder::on_unknown_end(Ring& ring, Lane& lane, const EventContext& context) {
  const auto owner = owners_.find(lane.key->id);
  const std::uint64_t barrier = std::max(ring.barrier, owner != owners_.end() ? owner->second.since : 0);
  if (ring.floor <= barrier + 1) {
    writer_.stray_end(*lane.key, context);
    return;
  }
  const auto all = [](const Event&) { return true; };
  spans_.interrupt(ring, lane, 0, context.event.time, all, [&] {
    writer_.open(*lane.key, --ring.floor, context.event, context.registry, SpanMark::began_before);
    writer_.end(*lane.key, context);
  });
}

void TrackBuilder::on_close(Ring& ring, Lane& lane, const Event& begin, std::uint64_t time, SpanMark mark) {
  if (mark == SpanMark::exited) time = std::max(time, ring.newest_ns);
  if (mark != SpanMark::interrupted) time = std::max(time, begin.time);
  writer_.close(*lane.key, time, begin, *registry_, mark);
}

void TrackBuilder::on_resume(Ring& ring, Lane& lane, const Event& begin, std::uint64_t time) {
  if (is_phase(begin)) ring.phases = &lane;
  writer_.open(*lane.key, time, begin, *registry_, SpanMark::resumed);
}

void TrackBuilder::on_other(Ring& ring, const EventContext& context) {
  prepare(ring, context);
  if (context.event.kind == EventKind::lost) return lost(ring, context);
  const Track& track = *place(ring).key;
  if (context.event.kind == EventKind::counter) {
    writer_.counter(track, context);
  } else {
    writer_.point(track, context);
  }
  if (is_lifecycle(context.event, Lifecycle::domain_terminate)) tracks_.forget_domain(ring.life.pid, ring.life.domain);
}

/// Arrows from the leader of a stop-the-world section to the domains that follow. An arrow must leave at the begin of
/// the section, when it is unknown which domains will follow: there is one for each domain that may.
Flows TrackBuilder::flows_of(const Ring& ring, const Event& event) {
  if (!is_phase(event)) return {};
  const StwPhases& phases = StwPhases::of(ring.life.family);
  if (event.id != phases.leader && event.id != phases.handler) return {};
  Section& section = sections_[ring.life.process];
  if (event.id == phases.handler) {
    if (std::erase(section.called, ring.life.domain) == 0) return {};
    return {.out = {}, .in = section.first_flow + ring.life.domain};
  }
  section = {.first_flow = next_flow_};
  flow_ids_.clear();
  const auto call = [&](const Ring& other) {
    const bool has_ended = !other.alive && other.life.incarnation > 0;
    if (&other == &ring || other.newest_ns == 0 || has_ended || flow_ids_.size() >= max_arrows) return;
    section.called.push_back(other.life.domain);
    flow_ids_.push_back(section.first_flow + other.life.domain);
  };
  // A ring file has not more domains; a hostile recording may.
  spans_.each_ring(ring.life.process, call, max_domains);
  next_flow_ += std::uint64_t{1} << Source::domain_bits;
  return {.out = flow_ids_, .in = 0};
}

void TrackBuilder::lost(Ring& ring, const EventContext& context) {
  const auto loss = context.batch.payload_as<Loss>(context.event);
  if (!loss) {
    writer_.malformed(context);
    return;
  }
  ring.barrier = ring.known_until(*loss, context.event.time);
  begin_at(ring, context.event.time);
  writer_.lost(*place(ring).key, context, *loss);
}

/// The known events of a ring begin here: the first ones, or those behind a gap.
void TrackBuilder::begin_at(Ring& ring, std::uint64_t time) {
  ring.floor = time;
  ring.barrier = std::max(ring.barrier, time - std::min(time, room_before));
}

/// Each incarnation runs on a thread of its own. The threads of the last one must not show the events of the next one,
/// although one may still be the last that scheduler events named for this domain.
void TrackBuilder::on_domain_begin(Ring& ring, std::uint64_t time, bool /*certain*/) {
  if (ring.life.incarnation == 1) return;
  static const Ring no_ring{};
  set_owner(ring, &no_ring);
  // A program may begin domains for as long as it runs. Only this ring refers to the tracks of the last ones. The
  // newest of them stays, because viewers forget a process without tracks.
  const auto own = std::ranges::find_if(ring.lanes, [](const auto& lane) { return !lane->key->is_thread; });
  if (own != ring.lanes.end()) {
    const Track* const before = std::exchange(ring.outdated, (*own)->key);
    if (before != nullptr) tracks_.remove(*before);
  }
  ring.lanes.clear();
  ring.current = ring.phases = nullptr;
  ring.barrier = ring.floor = time;
}

void TrackBuilder::process_event(const EventContext& context) {
  const auto record = context.batch.payload_as<ProcessRecord>(context.event);
  if (!record) {
    writer_.malformed(context);
    return;
  }
  const ProcessInfo& info = context.registry.process(record->process);
  tracks_.name_process(info.pid, info.name);
  writer_.process(tracks_.main_thread(record->process, info.pid), context, *record);
  if (static_cast<ProcessAction>(context.event.id) != ProcessAction::exit) return;
  spans_.add(context);
  tasks_.add(context);
  sections_.erase(record->process);
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

void TrackBuilder::sample(const EventContext& context) {
  if (const auto record = context.batch.payload_as<Sample>(context.event)) {
    writer_.sample(context, *record, tracks_.find(record->pid, record->tid));
  } else {
    writer_.malformed(context);
  }
}

/// The next switches say where threads were meanwhile.
void TrackBuilder::dropped(const EventContext& context) {
  if (const auto loss = context.batch.payload_as<Loss>(context.event)) {
    writer_.dropped(context, *loss);
  } else {
    writer_.malformed(context);
  }
}

void TrackBuilder::forget_ended(std::uint64_t now) {
  for (; !ended_.empty() && ended_.front().time + grace_ns < now; ended_.pop_front()) {
    const Ended& ended = ended_.front();
    spans_.forget_process(ended.process, now);
    sections_.erase(ended.process);
    const bool lives_again = std::ranges::any_of(
        spans_.processes(), [&](const auto& process) { return process.second.rings.front()->life.pid == ended.pid; });
    if (!lives_again) tracks_.forget_process(ended.pid);
  }
}

/// Drops all references to a track before it is removed.
void TrackBuilder::forget(const Track& track) {
  if (track.is_thread) threads_.forget_thread(track.tid, now_);
  owners_.erase(track.id);
  spans_.each_ring(track.process, [&](Ring& ring) {
    if (ring.outdated == &track) ring.outdated = nullptr;
    const auto lane = std::ranges::find(ring.lanes, &track, [](const auto& of) { return of->key; });
    if (lane == ring.lanes.end()) return;
    spans_.close(ring, **lane, 0, now_, SpanMark::exited);
    if (ring.current == lane->get()) ring.current = nullptr;
    if (ring.phases == lane->get()) ring.phases = nullptr;
    ring.lanes.erase(lane);
  });
}

void TrackBuilder::finish(std::uint64_t end_ns, const Registry& registry) {
  const std::uint64_t end = std::max(end_ns, now_);
  registry_ = &registry;
  spans_.finish(end);
  tasks_.finish(end, registry);
  threads_.finish(end);
}

}  // namespace rtev
