// SPDX-License-Identifier: MIT
#include "analysis/pauses/pause_finder.hpp"

#include <algorithm>
#include <bitset>
#include <initializer_list>

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
      : outer_(set(family, {"explicit_gc_set", "explicit_gc_stat", "explicit_gc_minor", "explicit_gc_major",
                            "explicit_gc_full_major", "explicit_gc_compact", "explicit_gc_major_slice", "major",
                            "empty_minor", "interrupt_remote", "stw_leader", "stw_handler"})),
        single_(set(family, {"minor", "empty_minor", "interrupt_remote", "stw_leader", "stw_handler"})),
        olly_(set(family, {"major", "interrupt_remote", "stw_leader"})),
        wait_(set(family, {"domain_condition_wait"})) {
    // Producers that imitate the runtime in part begin with collections.
    const Set begins_some = outer_ | set(family, {"minor", "domain_condition_wait"});
    for (std::size_t id = 0; id < inner_.size(); ++id) {
      const auto phase = static_cast<std::uint16_t>(id);
      inner_.set(phase, !phase_name(family, phase).empty() && !begins_some.test(phase));
    }
  }

  static Set set(Family family, std::initializer_list<std::string_view> names) {
    Set phases;
    for (const std::string_view name : names) {
      if (const auto phase = find_phase(family, name)) phases.set(static_cast<std::uint16_t>(*phase));
    }
    return phases;
  }
  static bool has(const Set& phases, std::uint16_t phase) { return phase < phases.size() && phases.test(phase); }

  Set outer_, single_, olly_, wait_, inner_;
};

constexpr std::uint64_t key_of(ProcessIndex process, std::uint32_t source) {
  return std::uint64_t{process} << 32 | source;
}

}  // namespace

std::string_view to_string(Unfinished reason) {
  switch (reason) {
    case Unfinished::lost:
      return "lost";
    case Unfinished::no_end:
      return "no_end";
    case Unfinished::clock:
      return "clock";
    case Unfinished::ended:
      return "ended";
  }
  return "unknown";
}

void PauseFinder::add(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::begin:
      if (Domain* const domain = domain_of(event, registry)) {
        if (domain->stopped) return;
        if (!domain->alive) begin_life(*domain, event.time, domain->life.incarnation > 0);
        begin(*domain, event);
      } else {
        ++ignored_;
      }
      return;
    case EventKind::end:
      if (Domain* const domain = domain_of(event, registry)) end(*domain, event);
      return;
    case EventKind::lifecycle:
      if (Domain* const domain = domain_of(event, registry)) lifecycle(*domain, event);
      return;
    case EventKind::lost:
      if (Domain* const domain = domain_of(event, registry)) {
        if (!domain->alive) begin_life(*domain, event.time, false);
        drop_all(*domain, event.time, Unfinished::lost);
        domain->nesting = NestingConfidence::lost;
        domain->gaps = true;
        if (const auto loss = batch.payload_as<Loss>(event)) listener_.on_loss(domain->life, *loss);
      }
      return;
    case EventKind::process:
      if (const auto record = batch.payload_as<ProcessRecord>(event)) {
        if (event.id == static_cast<std::uint16_t>(ProcessAction::exit)) end_process(record->process, event.time);
        if (event.id == static_cast<std::uint16_t>(ProcessAction::resume)) resume(record->process, event.time);
      }
      return;
    default:
      return;
  }
}

void PauseFinder::finish(std::uint64_t time_ns) {
  for (auto& [key, domain] : domains_) end_life(domain, time_ns);
  domains_.clear();
  latest_ = nullptr;
}

/// Null if the event is not from a ring, or for a domain beyond the limit.
PauseFinder::Domain* PauseFinder::domain_of(const Event& event, const Registry& registry) {
  const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot);
  if (!ring) return nullptr;
  if (latest_ && latest_->life.source == event.source && latest_->life.process == ring->process) return latest_;
  const std::uint64_t key = key_of(ring->process, event.source);
  if (const auto known = domains_.find(key); known != domains_.end()) return latest_ = &known->second;
  Domain* const domain = new_domain(key, registry);
  if (!domain) return nullptr;
  domain->life = {.process = ring->process,
                  .pid = registry.process(ring->process).pid,
                  .domain = Source::unpack(event.source).domain,
                  .family = registry.family_of(event).value_or(Family::since_5_3),
                  .source = event.source};
  domain->foreign = ring->producer.has_value();
  return latest_ = domain;
}

PauseFinder::Domain* PauseFinder::new_domain(std::uint64_t key, const Registry& registry) {
  if (domains_.size() >= limits_.domains) {
    // Late events may have added processes again that had ended. Search for them only sometimes: it takes long.
    if (until_sweep_ > 0) {
      --until_sweep_;
      return nullptr;
    }
    until_sweep_ = limits_.domains;
    latest_ = nullptr;
    std::erase_if(domains_, [&](const auto& entry) { return registry.process(entry.second.life.process).ended; });
    if (domains_.size() >= limits_.domains) return nullptr;
  }
  return &domains_[key];
}

void PauseFinder::begin_life(Domain& domain, std::uint64_t time_ns, bool certain) {
  domain.alive = true;
  listener_.on_domain_begin(domain.life, time_ns, certain);
}

void PauseFinder::end_life(Domain& domain, std::uint64_t time_ns) {
  if (!domain.alive) return;
  drop_all(domain, time_ns, Unfinished::ended);
  listener_.on_domain_end(domain.life, time_ns);
  ++domain.life.incarnation;
  domain.alive = domain.spawned = domain.gaps = domain.stopped = false;
  domain.nesting = NestingConfidence::firm;
}

void PauseFinder::begin(Domain& domain, const Event& event) {
  const Phases& phases = Phases::of(domain.life.family);
  const bool late = (event.flags & flag_late) != 0;
  if (phases.is_wait(event.id)) {
    if (domain.waits.size() >= limits_.depth) drop_wait(domain, 0, event.time, Unfinished::no_end);
    const bool in_pause = domain.root != none;
    domain.waits.push_back({event, in_pause});
    listener_.on_phase_begin(domain.life, {event.id, event.time, late, domain.spans.size(), in_pause});
    return;
  }
  if (phases.is_single(event.id)) {
    if (const auto open = domain.spans.find(event)) drop(domain, *open, event.time, Unfinished::no_end);
  }
  if (domain.spans.size() >= limits_.depth) {
    drop(domain, 0, event.time, Unfinished::no_end);
    domain.nesting = NestingConfidence::lost;
  }
  const bool root = domain.root == none && is_root(domain, event.id);
  if (root) domain.root = domain.spans.size();
  const PhaseBegin begun{event.id, event.time, late, domain.spans.size(), domain.root != none};
  domain.spans.push(event);
  if (root) listener_.on_pause_begin(domain.life, begun);
  listener_.on_phase_begin(domain.life, begun);
}

bool PauseFinder::is_root(Domain& domain, std::uint16_t phase) const {
  const Phases& phases = Phases::of(domain.life.family);
  if (rule_ == PauseRule::olly) return phases.is_olly(phase);
  if (!domain.spans.empty()) return false;
  if (domain.nesting == NestingConfidence::unseen)
    domain.nesting = phases.is_inner(phase) ? NestingConfidence::lost : NestingConfidence::firm;
  if (domain.foreign || phases.is_outer(phase)) domain.nesting = NestingConfidence::firm;
  return domain.nesting == NestingConfidence::firm;
}

void PauseFinder::end(Domain& domain, const Event& event) {
  const Phases& phases = Phases::of(domain.life.family);
  if (phases.is_wait(event.id)) {
    end_wait(domain, event);
    return;
  }
  const auto index = domain.spans.find(event);
  if (!index) {
    ++ends_without_begin_;
    if (!domain.spans.empty()) return;
    // The end of a phase that occurs only within others shows that those are still open.
    if (domain.nesting == NestingConfidence::unseen || phases.is_outer(event.id)) {
      domain.nesting = phases.is_inner(event.id) ? NestingConfidence::lost : NestingConfidence::firm;
    }
    return;
  }
  drop(domain, *index + 1, event.time, Unfinished::no_end);
  const Event open = domain.spans[*index];
  if (event.time < open.time) {
    drop(domain, *index, event.time, Unfinished::clock);
    return;
  }
  domain.spans.pop();
  const PhaseEnd ended = end_of(open, event.time, event.flags, *index, domain.is_in_pause(*index));
  const bool root = domain.root == *index;
  if (root) domain.root = none;
  listener_.on_phase_end(domain.life, ended);
  if (root) listener_.on_pause_end(domain.life, ended);
}

void PauseFinder::end_wait(Domain& domain, const Event& event) {
  if (domain.waits.empty()) {
    ++ends_without_begin_;
    return;
  }
  const Wait open = domain.waits.back();
  if (event.time < open.begin.time) {
    drop_wait(domain, domain.waits.size() - 1, event.time, Unfinished::clock);
    return;
  }
  domain.waits.pop_back();
  listener_.on_phase_end(domain.life, end_of(open.begin, event.time, event.flags, domain.spans.size(), open.in_pause));
}

/// `flags`: of the event that ended it.
PhaseEnd PauseFinder::end_of(const Event& begin, std::uint64_t end_ns, std::uint8_t flags, std::size_t depth,
                             bool in_pause) {
  const bool late = ((begin.flags | flags) & flag_late) != 0;
  return {begin.id, begin.time, std::max(end_ns, begin.time), late, depth, in_pause};
}

/// Drops the spans from an index on, innermost first.
void PauseFinder::drop(Domain& domain, std::size_t from, std::uint64_t time_ns, Unfinished reason) {
  while (domain.spans.size() > from) {
    const Event open = domain.spans.innermost();
    domain.spans.pop();
    const std::size_t index = domain.spans.size();
    const PhaseEnd dropped = end_of(open, time_ns, 0, index, domain.is_in_pause(index));
    const bool root = domain.root == index;
    if (root) domain.root = none;
    listener_.on_phase_dropped(domain.life, dropped, reason);
    if (root) listener_.on_pause_dropped(domain.life, dropped, reason);
  }
}

void PauseFinder::drop_wait(Domain& domain, std::size_t index, std::uint64_t time_ns, Unfinished reason) {
  const Wait open = domain.waits[index];
  domain.waits.erase(domain.waits.begin() + static_cast<std::ptrdiff_t>(index));
  listener_.on_phase_dropped(domain.life, end_of(open.begin, time_ns, 0, domain.spans.size(), open.in_pause), reason);
}

void PauseFinder::drop_all(Domain& domain, std::uint64_t time_ns, Unfinished reason) {
  drop(domain, 0, time_ns, reason);
  while (!domain.waits.empty()) drop_wait(domain, domain.waits.size() - 1, time_ns, reason);
}

void PauseFinder::lifecycle(Domain& domain, const Event& event) {
  switch (static_cast<Lifecycle>(event.id)) {
    case Lifecycle::domain_spawn:
      // A new domain takes part in collections before its spawn event: all events since the last domain ended are its
      // own.
      if (domain.spawned || domain.gaps) end_life(domain, event.time);
      if (!domain.alive) begin_life(domain, event.time, true);
      domain.spawned = true;
      return;
    case Lifecycle::domain_terminate:
      if (!domain.alive) begin_life(domain, event.time, false);
      end_life(domain, event.time);
      return;
    case Lifecycle::ring_start:
      drop_all(domain, event.time, Unfinished::ended);
      domain.nesting = NestingConfidence::unseen;
      domain.stopped = false;
      if (!domain.alive) begin_life(domain, event.time, true);
      return;
    case Lifecycle::ring_stop:
      // The stop-the-world section that takes the ring down begins in the ring and cannot end in it.
      drop_all(domain, event.time, Unfinished::ended);
      domain.stopped = true;
      return;
    case Lifecycle::ring_resume:
      resume(domain.life.process, event.time);
      return;
    default:
      return;
  }
}

/// The process writes events again after a pause, in which open spans may have ended.
void PauseFinder::resume(ProcessIndex process, std::uint64_t time_ns) {
  for (auto at = domains_.lower_bound(key_of(process, 0)); at != domains_.end() && at->second.life.process == process;
       ++at) {
    drop_all(at->second, time_ns, Unfinished::no_end);
    at->second.nesting = NestingConfidence::lost;
  }
}

void PauseFinder::end_process(ProcessIndex process, std::uint64_t time_ns) {
  const auto first = domains_.lower_bound(key_of(process, 0));
  auto last = first;
  for (; last != domains_.end() && last->second.life.process == process; ++last) end_life(last->second, time_ns);
  domains_.erase(first, last);
  latest_ = nullptr;
}

}  // namespace rtev
