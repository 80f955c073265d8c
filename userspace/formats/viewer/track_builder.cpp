// SPDX-License-Identifier: MIT
#include "formats/viewer/track_builder.hpp"

#include <algorithm>
#include <optional>

namespace rtev {
namespace {

/// Open spans of one track; viewers stop at 512. Only programs that do not end their spans reach it.
constexpr std::size_t max_open = 256;

/// Spans that began before the first known event of a ring are shown at most this long before it, in ns.
constexpr std::uint64_t room_before = 1000;

/// Arrows of one stop-the-world section. OCaml has at most 128 domains by default.
constexpr std::size_t max_arrows = 128;

/// Phases that the builder treats differently.
struct SpecialPhases {
  std::uint16_t leader, handler, wait;
};

SpecialPhases find_special_phases(Family family) {
  const auto find = [family](std::string_view name) {
    constexpr auto none = static_cast<Phase>(UINT16_MAX);
    return static_cast<std::uint16_t>(find_phase(family, name).value_or(none));
  };
  return {.leader = find("stw_leader"), .handler = find("stw_handler"), .wait = find("domain_condition_wait")};
}

SpecialPhases special_phases(Family family) {
  static const SpecialPhases before = find_special_phases(Family::before_5_3),
                             since = find_special_phases(Family::since_5_3);
  return family == Family::before_5_3 ? before : since;
}

}  // namespace

std::string_view to_string(SpanMark mark) {
  switch (mark) {
    case SpanMark::began_before:
      return "began before";
    case SpanMark::resumed:
      return "resumed";
    case SpanMark::interrupted:
      return "interrupted";
    case SpanMark::lost:
      return "lost";
    case SpanMark::domain_ended:
      return "domain ended";
    case SpanMark::exited:
      return "process ended";
    case SpanMark::cut:
      return "recording ended";
  }
  return "unknown";
}

void TrackBuilder::consume(const Batch& batch, const Registry& registry) {
  ++batch_;
  registry_ = &registry;
  for (const Event& event : batch.events()) {
    now_ = std::max(now_, event.time);
    add({.event = event, .batch = batch, .registry = registry});
  }
  forget_ended(now_, registry);
}

void TrackBuilder::add(const EventContext& context) {
  switch (context.event.kind) {
    case EventKind::process:
      return process_event(context);
    case EventKind::sched_switch:
      return sched_switch(context);
    case EventKind::wakeup:
      return wakeup(context);
    case EventKind::lost:
      if (Source::unpack(context.event.source).slot == 0) return dropped(context);
      return ring_event(context);
    default:
      return ring_event(context);
  }
}

void TrackBuilder::ring_event(const EventContext& context) {
  const Event& event = context.event;
  Ring& ring = ring_of(event, context.registry);
  if (ring.newest == 0) begin_at(ring, event.time);
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::user_begin:
      begin(ring, context);
      break;
    case EventKind::end:
    case EventKind::user_end:
      end(ring, context);
      break;
    case EventKind::counter:
      writer_.counter(*place(ring).track, context);
      break;
    case EventKind::lifecycle:
      lifecycle(ring, context);
      break;
    case EventKind::lost:
      lost(ring, context);
      break;
    default:
      writer_.point(*place(ring).track, context);
      break;
  }
  ring.newest = std::max(ring.newest, event.time);
}

TrackBuilder::Ring& TrackBuilder::ring_of(const Event& event, const Registry& registry) {
  Recent& recent = recent_[event.source % recent_.size()];
  if (recent.ring == nullptr || recent.source != event.source) [[unlikely]] {
    auto& ring = rings_[event.source];
    if (!ring) ring = std::make_unique<Ring>();
    recent = {.source = event.source, .ring = ring.get()};
  }
  if (recent.ring->checked != batch_) renew(*recent.ring, event, registry);
  return *recent.ring;
}

/// The slot may be of another ring now, and more may be known of its process.
void TrackBuilder::renew(Ring& ring, const Event& event, const Registry& registry) {
  const Source source = Source::unpack(event.source);
  const RingInfo* const info = registry.ring(source.slot);
  const ProcessIndex index = info != nullptr ? info->process : 0;
  const ProcessInfo& process = registry.process(index);
  if (ring.process != index || ring.checked == 0) {
    disown(ring);
    ring = Ring{.process = index, .pid = process.pid, .domain = source.domain};
    processes_[index].sources.push_back(event.source);
  }
  ring.checked = batch_;
  tracks_.name_process(ring.pid, process.comm);
  const SpecialPhases phases = special_phases(registry.family_of(event).value_or(Family::since_5_3));
  ring.leader_phase = phases.leader;
  ring.handler_phase = phases.handler;
  ring.wait_phase = phases.wait;
}

/// The stack for the next event of the ring. A phase belongs to the stack of the phase around it, unless that thread
/// waits in it and another one runs the domain.
TrackBuilder::Stack& TrackBuilder::place(Ring& ring) {
  if (ring.open_phases > 0 && !waits(ring)) return *ring.phases;
  if (ring.current != nullptr && ring.threads_version == threads_.writers_version()) return *ring.current;
  ring.threads_version = threads_.writers_version();
  const auto tid = threads_.writer_of(ring.pid, ring.domain);
  const Track* const writer =
      tid ? &tracks_.writer(ring.process, ring.pid, *tid, ring.domain, ring.incarnation) : nullptr;
  if (writer != nullptr && own(ring, *writer)) {
    ring.current = &stack_on(ring, *writer);
  } else if (ring.current == nullptr || ring.current->track->is_thread) {
    const auto own = std::ranges::find_if(ring.stacks, [](const auto& stack) { return !stack->track->is_thread; });
    ring.current = own != ring.stacks.end()
                       ? own->get()
                       : &stack_on(ring, tracks_.ring(ring.process, ring.pid, ring.domain, ring.incarnation));
  }
  return *ring.current;
}

bool TrackBuilder::waits(const Ring& ring) {
  if (ring.phases == nullptr) return true;
  const auto open = ring.phases->open.all();
  const auto innermost = std::find_if(open.rbegin(), open.rend(), is_phase);
  return innermost == open.rend() || innermost->id == ring.wait_phase;
}

/// Spans of two rings on one track would not nest. A thread writes to one ring only, but its tid may be used again.
bool TrackBuilder::own(const Ring& ring, const Track& track) {
  const auto [owner, is_first] = owners_.try_emplace(track.id, Owner{&ring, 0});
  if (owner->second.ring == nullptr) owner->second = {&ring, now_};
  return owner->second.ring == &ring;
}

void TrackBuilder::disown(const Ring& ring) {
  for (const auto& stack : ring.stacks) {
    if (const auto owner = owners_.find(stack->track->id); owner != owners_.end()) owner->second.ring = nullptr;
  }
}

TrackBuilder::Stack& TrackBuilder::stack_on(Ring& ring, const Track& track) {
  for (const auto& stack : ring.stacks) {
    if (stack->track == &track) return *stack;
  }
  ring.stacks.push_back(std::make_unique<Stack>(Stack{.track = &track, .open = {}}));
  return *ring.stacks.back();
}

void TrackBuilder::begin(Ring& ring, const EventContext& context) {
  Stack& stack = place(ring);
  if (stack.open.size() >= max_open) interrupt(ring, stack, 0, context, SpanMark::cut);
  stack.open.push(context.event);
  if (is_phase(context.event)) {
    ++ring.open_phases;
    ring.phases = &stack;
  }
  writer_.begin(*stack.track, context, flows_of(ring, context.event));
}

void TrackBuilder::end(Ring& ring, const EventContext& context) {
  Stack& here = place(ring);
  if (!here.open.empty() && SpanStack::same_span(here.open.innermost(), context.event)) [[likely]] {
    here.open.pop();
    if (is_phase(context.event)) {
      --ring.open_phases;
      ring.phases = &here;
    }
    writer_.end(*here.track, context);
    return;
  }
  const auto begun_on = [&](Stack& stack) {
    const auto at = stack.open.find(context.event);
    if (at) end_outer(ring, stack, *at, context);
    return at.has_value();
  };
  if (begun_on(here)) return;
  // A thread may end a span that another thread of the domain began.
  for (const auto& stack : ring.stacks) {
    if (stack.get() != &here && begun_on(*stack)) return;
  }
  end_unknown(ring, here, context);
}

/// Ends a span with others open inside it. Phases inside a phase end with it; other spans continue.
void TrackBuilder::end_outer(Ring& ring, Stack& stack, std::size_t at, const EventContext& context) {
  std::vector<Event> inner = interrupt(ring, stack, at + 1, context, SpanMark::interrupted);
  stack.open.pop();
  if (is_phase(context.event)) {
    --ring.open_phases;
    ring.phases = &stack;
    std::erase_if(inner, is_phase);
  }
  writer_.end(*stack.track, context);
  resume(ring, stack, inner, context);
}

/// Shows a span that began before the first known event, around all events since.
void TrackBuilder::end_unknown(Ring& ring, Stack& stack, const EventContext& context) {
  const auto owner = owners_.find(stack.track->id);
  const std::uint64_t barrier = std::max(ring.barrier, owner != owners_.end() ? owner->second.since : 0);
  if (ring.floor <= barrier + 1) {
    writer_.stray_end(*stack.track, context);
    return;
  }
  const std::vector<Event> inner = interrupt(ring, stack, 0, context, SpanMark::interrupted);
  writer_.open(*stack.track, --ring.floor, context.event, context.registry, SpanMark::began_before);
  writer_.end(*stack.track, context);
  resume(ring, stack, inner, context);
}

/// Closes the spans of a track from the innermost to the one at `down_to`, and returns them, outermost first.
std::vector<Event> TrackBuilder::interrupt(Ring& ring, Stack& stack, std::size_t down_to, const EventContext& context,
                                           SpanMark mark) {
  const auto closed = stack.open.all().subspan(down_to);
  std::vector<Event> spans(closed.begin(), closed.end());
  for (; stack.open.size() > down_to; stack.open.pop()) {
    if (is_phase(stack.open.innermost())) --ring.open_phases;
    writer_.close(*stack.track, context.event.time, stack.open.innermost(), context.registry, mark);
  }
  return spans;
}

void TrackBuilder::resume(Ring& ring, Stack& stack, const std::vector<Event>& spans, const EventContext& context) {
  for (const Event& span : spans) {
    stack.open.push(span);
    if (is_phase(span)) {
      ++ring.open_phases;
      ring.phases = &stack;
    }
    writer_.open(*stack.track, context.event.time, span, context.registry, SpanMark::resumed);
  }
}

/// Arrows from the leader of a stop-the-world section to the domains that follow. An arrow must leave at the begin of
/// the section, when it is unknown which domains will follow: there is one for each domain that may.
Flows TrackBuilder::flows_of(const Ring& ring, const Event& event) {
  if (!is_phase(event) || (event.id != ring.leader_phase && event.id != ring.handler_phase)) return {};
  Process& process = processes_[ring.process];
  if (event.id == ring.handler_phase) {
    if (std::erase(process.called, ring.domain) == 0) return {};
    return {.out = {}, .in = process.first_flow + ring.domain};
  }
  process.first_flow = next_flow_;
  process.called.clear();
  flow_ids_.clear();
  for (const std::uint32_t source : process.sources) {
    const Source other = Source::unpack(source);
    const auto found = rings_.find(source);
    if (found == rings_.end() || found->second.get() == &ring || found->second->newest == 0 || found->second->has_ended)
      continue;
    if (flow_ids_.size() >= max_arrows) break;
    process.called.push_back(other.domain);
    flow_ids_.push_back(process.first_flow + other.domain);
  }
  next_flow_ += std::uint64_t{1} << Source::domain_bits;
  return {.out = flow_ids_, .in = 0};
}

void TrackBuilder::lifecycle(Ring& ring, const EventContext& context) {
  const Event& event = context.event;
  if (is_lifecycle(event, Lifecycle::domain_spawn) && ring.newest != 0) {
    close_all(ring, event.time, context.registry, SpanMark::domain_ended);
    restart(ring, event.time);
  }
  writer_.point(*place(ring).track, context);
  if (is_lifecycle(event, Lifecycle::domain_terminate)) {
    ring.has_ended = true;
    close_all(ring, event.time, context.registry, SpanMark::domain_ended);
    tracks_.forget_domain(ring.pid, ring.domain);
  }
}

void TrackBuilder::lost(Ring& ring, const EventContext& context) {
  const auto loss = context.batch.payload_as<Loss>(context.event);
  if (!loss) {
    writer_.malformed(context);
    return;
  }
  const std::uint64_t from = std::clamp(loss->from_ns, std::min(ring.newest, context.event.time), context.event.time);
  close_all(ring, from, context.registry, SpanMark::lost);
  ring.barrier = from;
  begin_at(ring, context.event.time);
  writer_.lost(*place(ring).track, context, *loss);
}

void TrackBuilder::close_all(Ring& ring, std::uint64_t time, const Registry& registry, SpanMark mark) {
  for (const auto& stack : ring.stacks) {
    for (; !stack->open.empty(); stack->open.pop())
      writer_.close(*stack->track, std::max(time, stack->open.innermost().time), stack->open.innermost(), registry,
                    mark);
  }
  ring.open_phases = 0;
  ring.phases = nullptr;
}

/// The known events of a ring begin here: the first ones, or those behind a gap.
void TrackBuilder::begin_at(Ring& ring, std::uint64_t time) {
  ring.floor = time;
  ring.barrier = std::max(ring.barrier, time - std::min(time, room_before));
}

/// The next incarnation of the domain begins, on a thread of its own. The threads of the last one must not show its
/// events, although one may still be the last that scheduler events named for this domain.
void TrackBuilder::restart(Ring& ring, std::uint64_t time) {
  static const Ring no_ring{};
  for (const auto& stack : ring.stacks) {
    if (const auto owner = owners_.find(stack->track->id); owner != owners_.end()) owner->second.ring = &no_ring;
  }
  ++ring.incarnation;
  ring.has_ended = false;
  ring.barrier = time;
  begin_at(ring, time);
  ring.stacks.clear();
  ring.current = nullptr;
  ring.threads_version = 0;
  ring.newest = 0;
}

}  // namespace rtev
