// SPDX-License-Identifier: MIT
#include "analysis/pauses/pause_analyzer.hpp"

#include <algorithm>
#include <ranges>

#include "analysis/gc_stacks.hpp"
#include "stream/stw_phases.hpp"

namespace rtev {

PauseAnalyzer::~PauseAnalyzer() = default;

void PauseAnalyzer::add_other(const Event& event, const Batch& batch, const Registry& registry) {
  stacks_ = &registry.stacks();
  fold(event, batch, registry);
  tasks_.add(event, batch, registry);
  samples_.add(event, batch, registry);
}

void PauseAnalyzer::fold(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::sched_switch:
      if (const auto change = batch.payload_as<SchedSwitch>(event)) change_thread(event.time, *change);
      return;
    case EventKind::wakeup:
      threads_.add(event, batch, registry);
      return;
    case EventKind::sample:
      return;
    case EventKind::lost:
      threads_.add(event, batch, registry);
      finder_.add(event, batch, registry);
      return;
    case EventKind::process:
      // Pauses must end before their threads are forgotten.
      finder_.add(event, batch, registry);
      threads_.add(event, batch, registry);
      if (const auto record = batch.payload_as<ProcessRecord>(event)) end_image(*record, event, registry);
      return;
    default:
      finder_.add(event, batch, registry);
      return;
  }
}

void PauseAnalyzer::end_image(const ProcessRecord& record, const Event& event, const Registry& registry) {
  if (event.id != static_cast<std::uint16_t>(ProcessAction::exit)) return;
  world_.forget(record.process);
  history_.forget_process(registry.process(record.process).pid);
}

void PauseAnalyzer::on_domain_end(const DomainLife& domain, std::uint64_t time_ns) {
  consumer_.on_domain_gone(domain, time_ns);
  const auto found = domains_.find(domain.key());
  if (found == domains_.end()) return;
  forget_pause(found->second);
  domains_.erase(found);
  last_ = nullptr;
}

void PauseAnalyzer::change_thread(std::uint64_t time_ns, const SchedSwitch& change) {
  scheduler_seen_ = true;
  threads_.add(time_ns, change);
  if (change.state != LeftState::dead) return;
  history_.forget_thread(change.prev.tid);
}

ThreadActivity PauseAnalyzer::activity(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const {
  ThreadActivity activity = history_.between(tid, from_ns, to_ns);
  activity.stacks = samples_.between(tid, from_ns, to_ns);
  if (const auto& by = activity.longest_wait.by) activity.holder_stacks = samples_.between(by->tid, from_ns, to_ns);
  return activity;
}

void PauseAnalyzer::on_thread_interval(const ThreadInterval& interval) {
  consumer_.on_thread_interval(interval);
  history_.add(interval);
  const auto [first, last] = by_tid_.equal_range(interval.tid);
  for (OpenPause* const pause : std::ranges::subrange(first, last) | std::views::values)
    pause->details.scheduling.add(interval, pause->details.begin_ns, interval.end_ns, cpus_);
}

PauseAnalyzer::Domain* PauseAnalyzer::find(const DomainLife& life) {
  if (last_ != nullptr && last_key_ == life.key()) return last_;
  const auto found = domains_.find(life.key());
  if (found == domains_.end()) return nullptr;
  last_key_ = life.key();
  return last_ = &found->second;
}

PauseAnalyzer::Domain& PauseAnalyzer::followed(const DomainLife& life) {
  if (Domain* const known = find(life)) return *known;
  // Late events may add domains again that have ended.
  if (domains_.size() >= max_domains) {
    std::erase_if(domains_, [](const auto& entry) { return !entry.second.pause && entry.second.phases.empty(); });
    last_ = nullptr;
  }
  return domains_[life.key()];
}

std::int32_t PauseAnalyzer::tid_of(const DomainLife& domain) const {
  return scheduler_seen_ ? threads_.writer_of(domain.pid, domain.domain).value_or(0) : 0;
}

void PauseAnalyzer::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  Domain& domain = followed(life);
  forget_pause(domain);
  domain.tid = tid_of(life);
  const std::size_t nodes = open_pauses_++ < max_detailed_ ? PhaseTree::max_nodes : few_nodes;
  domain.pause.emplace(PauseDetails{.domain = life,
                                    .root = root.phase,
                                    .begin_ns = root.time_ns,
                                    .tid = domain.tid,
                                    .task = tasks_.running_name(life.process, life.domain),
                                    .phases = PhaseTree(nodes)},
                       threads_.at(domain.tid, root.time_ns));
  domain.pause->begins_lost = threads_.has_lost(domain.tid, root.time_ns);
  if (domain.tid != 0 && by_tid_.count(domain.tid) < max_pauses_of_thread) by_tid_.emplace(domain.tid, &*domain.pause);
  consumer_.on_pause_begun(life, root.time_ns);
}

void PauseAnalyzer::on_pause_end(const DomainLife& life, const PhaseEnd& root) {
  Domain* const known = find(life);
  if (known == nullptr || !known->pause) return;
  Domain& domain = *known;
  OpenPause& pause = *domain.pause;
  const std::int32_t tid = domain.tid;
  if (const auto lasts = threads_.current(tid, root.end_ns))
    pause.details.scheduling.add(*lasts, root.begin_ns, root.end_ns, cpus_);
  const TimeSplit time = ThreadTracker::between(pause.begin, threads_.at(tid, root.end_ns));
  for (const PauseSection& part : pause.details.sections) {
    StwDomain& own = part.section->domains[part.index];
    own.pause_begin_ns = root.begin_ns;
    own.pause_ns = root.end_ns - root.begin_ns;
    own.pause_time = time;
  }
  const bool has_lost = pause.begins_lost || threads_.has_lost(tid, root.begin_ns);
  PauseDetails details = std::move(pause).finish(root, time, threads_.role(tid));
  if (time.unknown > 0 && scheduler_seen_ && (root.late || has_lost))
    details.unknown_as = root.late ? PauseDetails::UnknownAs::late : PauseDetails::UnknownAs::lost;
  const auto stacks_of = [&](std::int32_t thread) { return samples_.between(thread, root.begin_ns, root.end_ns); };
  if (scheduler_seen_ || life.domain != 0) {
    details.stacks = stacks_of(tid);
  } else {
    // Without switches the thread is unknown: it is the main one if that was in the GC meanwhile.
    details.stacks = stacks_of(life.pid);
    std::erase_if(details.stacks, [this](const SeenStack& seen) { return !is_below_gc_entry(seen.stack, *stacks_); });
  }
  details.scheduling.add_stacks(stacks_of);
  forget_pause(domain);
  consumer_.on_pause_details(std::move(details));
}

void PauseAnalyzer::on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) {
  if (Domain* const known = find(life)) forget_pause(*known);
  consumer_.on_unfinished(life, root, reason);
}

void PauseAnalyzer::forget_pause(Domain& domain) {
  if (!domain.pause) return;
  const auto [first, last] = by_tid_.equal_range(domain.pause->details.tid);
  for (auto at = first; at != last;) at = at->second == &*domain.pause ? by_tid_.erase(at) : std::next(at);
  domain.pause.reset();
  --open_pauses_;
}

void PauseAnalyzer::on_loss(const DomainLife& life, const Loss& loss) {
  const auto first = domains_.lower_bound(std::uint64_t{life.process} << 32);
  const auto last = domains_.lower_bound(std::uint64_t{life.process + 1} << 32);
  for (Domain& other : std::ranges::subrange(first, last) | std::views::values) {
    if (other.pause) other.pause->details.lose(life.domain);
  }
  if (const auto section = world_.current(life.process)) section->lose(life.domain, loss);
  consumer_.on_words_lost(life, loss);
}

void PauseAnalyzer::on_phase_begin(const DomainLife& life, const PhaseBegin& phase) {
  const StwPhases& phases = StwPhases::of(life.family);
  Domain& domain = followed(life);
  if (domain.pause && phase.phase != phases.condition_wait)
    domain.pause->details.phases.begin(phase.phase, phase.time_ns);

  if (OpenPhase* const part = innermost_part(domain)) {
    if (part->waits_for_others) pass_start(domain, *part, part->begin_ns, phase.time_ns);
    if (phase.phase == phases.start_barrier) arrive(domain, *part, phase.time_ns);
    if (phase.phase == phases.minor && part->part) part->part->domain().minor_begin_ns = phase.time_ns;
  }
  const bool leads = phase.phase == phases.leader;
  if (!leads && phase.phase != phases.handler && phase.phase != phases.start_barrier &&
      phase.phase != phases.minor_barrier) {
    return;
  }
  if (!domain.pause) domain.tid = tid_of(life);
  OpenPhase open{.phase = phase.phase, .begin_ns = phase.time_ns, .begin = threads_.at(domain.tid, phase.time_ns)};
  if (leads || phase.phase == phases.handler) {
    open.waits_for_others = leads && life.family == Family::before_5_3;
    open.part = leads ? world_.lead(life.process, life.domain, phase.time_ns)
                      : world_.join(life.process, life.family, life.domain, phase.time_ns);
    if (open.part) {
      StwDomain& own = open.part->domain();
      own.tid = domain.tid;
      own.role = threads_.role(domain.tid);
      own.task = tasks_.running_name(life.process, life.domain);
      if (!leads && open.part->section->leader_seen)
        own.before = activity(domain.tid, open.part->section->begin_ns, phase.time_ns);
      if (domain.pause) ++domain.pause->details.section_count;
    }
  }
  domain.phases.push_back(std::move(open));
}

void PauseAnalyzer::on_phase_end(const DomainLife& life, const PhaseEnd& phase) {
  if (phase.phase == StwPhases::of(life.family).condition_wait)
    consumer_.on_condition_wait(life, phase.end_ns - phase.begin_ns);
  if (Domain* const known = find(life)) close_phase(*known, life, phase, true);
}

void PauseAnalyzer::on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished /*reason*/) {
  if (Domain* const known = find(life)) close_phase(*known, life, phase, false);
}

/// `ended`: phase.end_ns is its end; otherwise it ended some time before.
void PauseAnalyzer::close_phase(Domain& domain, const DomainLife& life, const PhaseEnd& phase, bool ended) {
  const StwPhases& phases = StwPhases::of(life.family);
  if (domain.pause && phase.phase != phases.condition_wait) domain.pause->details.phases.end(phase.end_ns);
  if (phase.phase == phases.minor && ended) {
    OpenPhase* const part = innermost_part(domain);
    if (part && part->part && part->part->domain().minor_begin_ns == phase.begin_ns) {
      StwDomain& own = part->part->domain();
      own.minor_end_ns = phase.end_ns;
      own.minor = activity(domain.tid, phase.begin_ns, phase.end_ns);
    }
  }
  if (domain.phases.empty() || domain.phases.back().phase != phase.phase) return;
  OpenPhase open = std::move(domain.phases.back());
  domain.phases.pop_back();

  const TimeSplit time = ThreadTracker::between(open.begin, threads_.at(domain.tid, phase.end_ns));
  if (open.phase == phases.start_barrier || open.phase == phases.minor_barrier) {
    if (domain.pause) domain.pause->in_barriers += time;
    OpenPhase* const part = innermost_part(domain);
    if (!part || !ended) return;
    if (open.phase == phases.start_barrier) {
      pass_start(domain, *part, open.begin_ns, phase.end_ns);
    } else {
      pass_minor_end(domain, *part, open.begin_ns, phase.end_ns);
    }
    return;
  }
  if (domain.pause) domain.pause->in_sections += time;
  if (!open.part) return;
  if (ended) open.part->domain().left_ns = phase.end_ns;
  if (domain.pause) {
    domain.pause->took_part({.section = open.part->section,
                             .index = open.part->index,
                             .start_wait_ns = open.start_wait_ns,
                             .finish_wait_ns = open.finish_wait_ns,
                             .time_ns = phase.end_ns - phase.begin_ns});
  }
}

/// The part in a section that the domain is in; null if it is in none.
PauseAnalyzer::OpenPhase* PauseAnalyzer::innermost_part(Domain& domain) {
  for (OpenPhase& open : std::views::reverse(domain.phases)) {
    if (open.part) return &open;
  }
  return nullptr;
}

/// The domain has reached the barrier at the start of the section.
void PauseAnalyzer::arrive(const Domain& domain, OpenPhase& part, std::uint64_t time_ns) {
  StwSection& section = *part.part->section;
  StwDomain& own = part.part->domain();
  section.has_barrier = true;
  own.arrived_ns = time_ns;
  if (section.leader_seen) own.before = activity(domain.tid, section.begin_ns, time_ns);
}

/// The domain continues after all have arrived at the section.
void PauseAnalyzer::pass_start(Domain& domain, OpenPhase& part, std::uint64_t begin_ns, std::uint64_t end_ns) {
  part.waits_for_others = false;
  StwDomain& own = part.part->domain();
  own.passed_ns = end_ns;
  const StwDomain* const last = part.part->section->last_to_arrive();
  if (!last || last == &own) return;
  const std::uint64_t all_there = std::clamp(last->arrived_ns, begin_ns, end_ns);
  TimeSplit waited = activity(domain.tid, begin_ns, all_there).time;
  // While asleep it still waits for its wakeup by the last domain.
  waited.sleeping += activity(domain.tid, all_there, end_ns).time.sleeping;
  part.start_wait_ns += waited.total();
  if (domain.pause) domain.pause->start_wait += waited;
}

/// The domain continues after all have ended their parts of a minor collection.
void PauseAnalyzer::pass_minor_end(Domain& domain, OpenPhase& part, std::uint64_t begin_ns, std::uint64_t end_ns) {
  StwDomain& own = part.part->domain();
  own.minor_passed_ns = end_ns;
  std::uint64_t all_done = begin_ns;
  bool certain = true;
  for (const StwDomain& other : part.part->section->domains) {
    if (&other == &own || other.minor_begin_ns == 0) continue;
    // A domain reaches the barrier before it reports its end, and may be interrupted in between.
    certain = certain && other.minor_end_ns != 0;
    all_done = std::max(all_done, other.minor_end_ns == 0 ? end_ns : std::min(other.minor_end_ns, end_ns));
  }
  TimeSplit waited = activity(domain.tid, begin_ns, all_done).time;
  if (!certain) waited.runnable = 0;
  waited.sleeping += activity(domain.tid, all_done, end_ns).time.sleeping;
  part.finish_wait_ns += waited.total();
  if (domain.pause) domain.pause->finish_wait += waited;
}

}  // namespace rtev
