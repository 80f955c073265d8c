// SPDX-License-Identifier: MIT
#include "analysis/pause_finder.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <span>

#include "base/enum_names.hpp"

namespace rtev {
namespace {

/// Properties of the phases of a family.
class Phases {
 public:
  static const Phases& of(Family family) {
    static const Phases before_5_3{Family::before_5_3}, since_5_3{Family::since_5_3};
    return family == Family::before_5_3 ? before_5_3 : since_5_3;
  }

  /// OCaml's runtime begins it while no other is open.
  bool is_outer(std::uint16_t phase) const { return has(outer_, phase); }
  /// Never begins again before it has ended.
  bool is_single(std::uint16_t phase) const { return has(single_, phase); }
  /// What olly counts as a pause.
  bool is_olly(std::uint16_t phase) const { return has(olly_, phase); }
  /// Within others only, as all phases of the runtime are but those that begin one.
  bool is_inner(std::uint16_t phase) const { return has(inner_, phase); }
  bool is_wait(std::uint16_t phase) const { return has(wait_, phase); }

 private:
  using Set = std::bitset<64>;

  explicit Phases(Family family)
      : outer_(set(family, outermost_phases())),
        single_(set(family, std::array<std::string_view, 5>{"minor", "empty_minor", "interrupt_remote", "stw_leader",
                                                            "stw_handler"})),
        olly_(set(family, std::array<std::string_view, 3>{"major", "interrupt_remote", "stw_leader"})),
        wait_(set(family, std::array<std::string_view, 1>{"domain_condition_wait"})) {
    // Producers that imitate the runtime in part begin with collections.
    const Set begins_some = outer_ | wait_ | set(family, std::array<std::string_view, 1>{"minor"});
    for (std::size_t id = 0; id < inner_.size(); ++id) {
      const auto phase = static_cast<std::uint16_t>(id);
      inner_.set(phase, !phase_name(family, phase).empty() && !begins_some.test(phase));
    }
  }

  static Set set(Family family, std::span<const std::string_view> names) {
    Set phases;
    for (const std::string_view name : names) {
      if (const auto phase = find_phase(family, name)) phases.set(static_cast<std::uint16_t>(*phase));
    }
    return phases;
  }
  static bool has(const Set& phases, std::uint16_t phase) { return phase < phases.size() && phases.test(phase); }

  Set outer_, single_, olly_, wait_, inner_;
};

Unfinished reason_of(SpanMark mark) {
  switch (mark) {
    case SpanMark::lost:
      return Unfinished::lost;
    case SpanMark::interrupted:
      return Unfinished::no_end;
    default:
      return Unfinished::ended;
  }
}

bool is_late(const Event& event) {
  return (event.flags & flag_late) != 0;
}

}  // namespace

std::string_view to_string(Unfinished reason) {
  static constexpr std::string_view names[]{"lost", "no_end", "clock", "ended"};
  return name_at(names, reason);
}

void PauseFinder::add(const Event& event, const Batch& batch, const Registry& registry) {
  now_ns_ = event.time;
  switch (event.kind) {
    case EventKind::process:
      if (const auto record = batch.payload_as<ProcessRecord>(event);
          record && event.id == static_cast<std::uint16_t>(ProcessAction::resume))
        resume(record->process);
      break;
    case EventKind::begin:
    case EventKind::end:
    case EventKind::lifecycle:
    case EventKind::lost:
      if (registry.ring(Source::unpack(event.source).slot)) break;
      ignored_ += event.kind == EventKind::begin;
      return;
    default:
      return;
  }
  if (!spans_.add({event, batch, registry})) ignored_ += event.kind == EventKind::begin;
}

void PauseFinder::finish(std::uint64_t time_ns) {
  now_ns_ = time_ns;
  spans_.finish(time_ns);
}

void PauseFinder::on_domain_begin(PauseRing& ring, std::uint64_t time_ns, bool certain) {
  listener_.on_domain_begin(ring.life, time_ns, certain);
}

void PauseFinder::on_domain_end(PauseRing& ring, std::uint64_t time_ns) {
  listener_.on_domain_end(ring.life, time_ns);
  ring.stopped = false;
  ring.nesting = NestingConfidence::firm;
}

PauseFinder::Lane* PauseFinder::lane_for(PauseRing& ring, const EventContext& context) {
  const Event& event = context.event;
  const Phases& phases = Phases::of(ring.life.family);
  Lane& lane = ring.lane(phases.is_wait(event.id) ? PhaseKind::wait : PhaseKind::work);
  if (event.kind != EventKind::begin) return &lane;
  // The stop-the-world section that takes the ring down begins in the ring and cannot end in it.
  if (ring.stopped) return nullptr;
  if (phases.is_single(event.id)) {
    const auto open = std::ranges::find(lane.open, event.id, &Event::id);
    spans_.close(ring, lane, static_cast<std::size_t>(open - lane.open.begin()), event.time, SpanMark::interrupted);
  }
  if (lane.open.size() >= depth_) {
    spans_.close(ring, lane, 0, event.time, SpanMark::interrupted);
    ring.nesting = NestingConfidence::lost;
  }
  return &lane;
}

void PauseFinder::on_begin(PauseRing& ring, Lane& lane, const EventContext& context) {
  const Event& event = context.event;
  const PhaseBegin begun{event.id, event.time, is_late(event)};
  if (ring.root == PauseRing::none && is_root(ring, lane, event.id)) {
    ring.root = lane.open.size() - 1;
    listener_.on_pause_begin(ring.life, begun);
  }
  listener_.on_phase_begin(ring.life, begun);
}

/// Whether a pause begins with the phase, which is the innermost of its lane.
bool PauseFinder::is_root(PauseRing& ring, const Lane& lane, std::uint16_t phase) const {
  if (!knows_pauses_ || lane.key == PhaseKind::wait) return false;
  const Phases& phases = Phases::of(ring.life.family);
  if (rule_ == PauseRule::olly) return phases.is_olly(phase);
  if (lane.open.size() > 1) return false;
  if (ring.nesting == NestingConfidence::unseen)
    ring.nesting = phases.is_inner(phase) ? NestingConfidence::lost : NestingConfidence::firm;
  if (ring.from_producer || phases.is_outer(phase)) ring.nesting = NestingConfidence::firm;
  return ring.nesting == NestingConfidence::firm;
}

void PauseFinder::on_end(PauseRing& ring, Lane& lane, const Event& begin, const EventContext& context) {
  const Event& event = context.event;
  if (event.time < begin.time) return drop(ring, lane, begin, Unfinished::clock);
  const PhaseEnd ended{begin.id, begin.time, event.time, is_late(begin) || is_late(event)};
  const bool is_pause = ring.take_root(lane);
  listener_.on_phase_end(ring.life, ended);
  if (is_pause) listener_.on_pause_end(ring.life, ended);
}

void PauseFinder::on_unknown_end(PauseRing& ring, Lane& lane, const EventContext& context) {
  ++ends_without_begin_;
  if (lane.key == PhaseKind::wait || !lane.open.empty()) return;
  // The end of a phase that occurs only within others shows that those are still open.
  const Phases& phases = Phases::of(ring.life.family);
  const std::uint16_t phase = context.event.id;
  if (ring.nesting == NestingConfidence::unseen || phases.is_outer(phase))
    ring.nesting = phases.is_inner(phase) ? NestingConfidence::lost : NestingConfidence::firm;
}

void PauseFinder::on_close(PauseRing& ring, Lane& lane, const Event& begin, std::uint64_t /*time_ns*/, SpanMark mark) {
  drop(ring, lane, begin, reason_of(mark));
}

/// The phase has been removed from the lane.
void PauseFinder::drop(PauseRing& ring, const Lane& lane, const Event& begin, Unfinished reason) {
  const PhaseEnd dropped{begin.id, begin.time, std::max(now_ns_, begin.time), is_late(begin)};
  const bool is_pause = ring.take_root(lane);
  listener_.on_phase_dropped(ring.life, dropped, reason);
  if (is_pause) listener_.on_pause_dropped(ring.life, dropped, reason);
}

void PauseFinder::on_other(PauseRing& ring, const EventContext& context) {
  const Event& event = context.event;
  if (event.kind == EventKind::begin) ++ignored_;
  if (event.kind == EventKind::lost) {
    ring.nesting = NestingConfidence::lost;
    if (const auto loss = context.batch.payload_as<Loss>(event)) listener_.on_loss(ring.life, *loss);
  } else if (is_lifecycle(event, Lifecycle::ring_start)) {
    ring.nesting = NestingConfidence::unseen;
    ring.stopped = false;
  } else if (is_lifecycle(event, Lifecycle::ring_stop)) {
    spans_.close_all(ring, event.time, SpanMark::domain_ended);
    ring.stopped = true;
  } else if (is_lifecycle(event, Lifecycle::ring_resume)) {
    resume(ring.life.process);
  }
}

/// The process writes events again after a pause, in which open spans may have ended.
void PauseFinder::resume(ProcessIndex process) {
  spans_.each_used_ring(process, SpanVisit::resume, [&](PauseRing& ring) {
    spans_.close_all(ring, now_ns_, SpanMark::interrupted);
    ring.nesting = NestingConfidence::lost;
  });
}

}  // namespace rtev
