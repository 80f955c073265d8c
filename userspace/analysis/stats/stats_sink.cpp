// SPDX-License-Identifier: MIT
#include "analysis/stats/stats_sink.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

#include "analysis/gc_stacks.hpp"
#include "analysis/stats/stats_state.hpp"
#include "base/saturating_sum.hpp"
#include "stream/program_key.hpp"

namespace rtev {
namespace {

bool is_action(const Event& event, ProcessAction action) {
  return event.id == static_cast<std::uint16_t>(action);
}

}  // namespace

Stats::Stats(const StatsOptions& options) : options_(options), merge_at_bytes_(options.max_bytes) {}

Stats::~Stats() = default;

void Stats::header(const RunHeader& header) {
  allocators_.header(header);
  version_ = header.version;
  not_recorded_ = header.not_recorded;
  pauses_.header(header);
  run_ns_ = header.start_ns;
  run_realtime_ns_ = header.start_realtime_ns;
  start_ns_ = header.begin_ns();
  now_ns_ = std::max(now_ns_, start_ns_);
  // Else what has an earlier time did not happen then: programs write into rings what they like.
  shown_from_ns_ = header.reads_past() ? header.shown_from_ns : start_ns_;
  switches_since_ns_ = header.shown_from_ns;
}

void Stats::consume(const Batch& batch, const Registry& registry) {
  allocators_.consume(batch, registry);
  for (const Event& event : batch.events()) {
    add(event, batch, registry);
    if (bytes_ > merge_at_bytes_ || ended_ > options_.ended_processes) merge_least(registry);
  }
}

void Stats::summary(const RunSummary& summary, const Registry& registry) {
  allocators_.summary(summary, registry);
  count_samples(registry, true);
  now_ns_ = std::max(now_ns_, summary.end_ns);
  rings_missed_ = summary.rings_missed;
  lacks_ = lacks_of(with_scheduler_gaps(summary, scheduler_gaps()), registry);
  truncated_ = !summary.complete;
  not_recorded_.note(summary.events);
  for (const RunSummary::Drop& drop : summary.drops) {
    if (drop.kind == to_string(EventKind::sched_switch)) switches_dropped_ = drop.count;
  }
  for (auto& process : processes_ | std::views::values) {
    const ProcessInfo& info = registry.process(process.index);
    process.lacks_past = summary.whole_ring && info.words.before_attach > 0;
    process.lacks_rings = info.missed.sum() > 0 || info.words.unread > 0;
  }
}

void Stats::add(const Event& event, const Batch& batch, const Registry& registry) {
  if (start_ns_ == 0) start_ns_ = event.time;
  now_ns_ = std::max(now_ns_, event.time);
  switch (event.kind) {
    case EventKind::process:
      add_process(event, batch, registry);
      return;
    case EventKind::sched_switch:
      if (options_.cpu_time) add_switch(event, batch, registry);
      return;
    case EventKind::wakeup:
      if (options_.cpu_time) threads_.add(event, batch, registry);
      return;
    case EventKind::sample:
      return add_sample(event, batch, registry);
    default:
      break;
  }
  if (is_sched_loss(event)) {
    threads_.add(event, batch, registry);
    if (const auto loss = batch.payload_as<Loss>(event)) switches_since_ns_ = std::max(switches_since_ns_, loss->to_ns);
    return;
  }
  const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot);
  if (!ring) return;
  Process& process = process_at(ring->process, registry, event.time);
  process.is_tracked(event.time);
  if (process.ended) process.end_ns = std::max(process.end_ns, event.time);  // a late event
  // The last event of a domain is its own, the first one of the next is not.
  const bool is_last = is_lifecycle(event, Lifecycle::domain_terminate);
  if (is_last) process.count(event, batch, *ring);
  pauses_.add(event, batch, registry);
  if (!is_last) process.count(event, batch, *ring);
}

void Stats::add_process(const Event& event, const Batch& batch, const Registry& registry) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return;
  const std::uint64_t time_ns = std::max(event.time, shown_from_ns_);
  Process& process = process_at(record->process, registry, time_ns);
  if (is_action(event, ProcessAction::exit)) {
    if (!process.ended) end_process(process, record->detail, event, batch, registry);
    return;
  }
  if (is_action(event, ProcessAction::found) || is_action(event, ProcessAction::exec) ||
      is_action(event, ProcessAction::fork)) {
    images_[process.stats.pid] = process.index;
    // It did nothing before that, whatever its ring says.
    if (!is_action(event, ProcessAction::found) && process.domains.empty())
      process.shown_from_ns = process.stats.begin_ns = time_ns;
    // The kernel side does not track a program that has just begun: it does not know yet what it is.
    if (!is_action(event, ProcessAction::exec)) process.is_tracked(time_ns);
  } else if ((is_action(event, ProcessAction::ring) || is_action(event, ProcessAction::probe)) && !process.ring_ns) {
    process.ring_ns = time_ns;
    process.is_tracked(time_ns);
  } else if (is_action(event, ProcessAction::pause)) {
    process.paused = true;
  }
  pauses_.add(event, batch, registry);
}

void Stats::end_process(Process& process, std::int64_t status, const Event& event, const Batch& batch,
                        const Registry& registry) {
  process.learn(registry.process(process.index));
  process.ending = true;
  if (status == exit_by_exec) {
    // The thread goes on; what it ran until now was for this image.
    for (const ThreadInterval& interval : running()) {
      if (interval.pid == process.stats.pid) on_thread_interval(interval);
    }
  }
  threads_.add(event, batch, registry);
  pauses_.add(event, batch, registry);
  for (Process::Domain& domain : process.domains) {
    if (domain.current) process.retire(std::move(domain.current), event.time, options_.ended_domains);
    if (domain.merged) process.end_merged(domain, now_ns_);
  }
  process.ended = true;
  process.end_ns = event.time;
  for (const auto& domain : process.retired) process.end_ns = std::max(process.end_ns, domain->end_ns);
  if (const auto image = images_.find(process.stats.pid); image != images_.end() && image->second == process.index)
    images_.erase(image);
  ++ended_;
}

/// Merges ended processes, and domains of running ones, with the least time in the garbage collector, until a part of
/// the memory is free again: each time costs as much as sorting all. Domain 0 of a running process comes last: it
/// takes part in all collections, and so counts those of its process.
void Stats::merge_least(const Registry& registry) {
  struct Place {
    bool counts_collections;
    std::uint64_t gc_ns, events;
    Process* process;
    Process::Domain* running = nullptr;    ///< a domain of a running process
    const Incarnation* retired = nullptr;  ///< likewise, one that ended; neither: an ended process
  };
  std::vector<Place> places;
  for (Process& process : processes_ | std::views::values) {
    Tally all{.gc_ns = process.others.gc_ns, .events = process.others.events};
    for (const auto& domain : process.retired) {
      const Tally& tally = domain->tally;
      all.gc_ns = saturating_sum(all.gc_ns, tally.gc_ns);
      all.events += tally.events;
      if (!process.ended) places.push_back({false, tally.gc_ns, tally.events, &process, nullptr, domain.get()});
    }
    // By domain, or a process would outdo others with many domains that do little.
    const std::uint64_t domains = std::max<std::uint64_t>(process.retired.size() + process.other_count, 1);
    if (process.ended) places.push_back({false, all.gc_ns / domains, all.events / domains, &process});
    for (Process::Domain& domain : process.domains) {
      if (!domain.current || process.ended) continue;
      const Tally& tally = domain.current->tally;
      places.push_back({domain.current->domain == 0, tally.gc_ns, tally.events, &process, &domain});
    }
  }
  std::ranges::sort(places, {},
                    [](const Place& place) { return std::tuple{place.counts_collections, place.gc_ns, place.events}; });
  for (const Place& place : places) {
    const bool has_room = bytes_ <= options_.max_bytes / 4 * 3;
    if (has_room && ended_ <= options_.ended_processes * 3 / 4) break;
    if (!place.running && !place.retired) {
      merge(*place.process, registry.process(place.process->index).replaced);
    } else if (!has_room) {
      place.running ? place.process->merge(*place.running) : place.process->merge(*place.retired);
    }
  }
  // What remains of processes that run cannot be merged.
  merge_at_bytes_ = std::max(options_.max_bytes, bytes_ + options_.max_bytes / 4);
}

/// Puts an ended process to the others.
void Stats::merge(const Process& ended, bool replaced) {
  const ProcessStats stats = stats_of(ended, {});
  if (options_.on_unlisted) options_.on_unlisted(stats);
  other_processes_ += stats.figures;
  if (!stats.did_nothing()) {
    std::string key = program_key(stats.exe, stats.comm);
    constexpr std::size_t max_programs = 256;
    if (other_programs_.size() >= max_programs && !other_programs_.contains(key)) key.clear();
    ProgramStats& program = other_programs_[key];
    program.key = std::move(key);
    program.add(stats);
    ++program.unlisted;
    program.unlisted_figures += stats.figures;
  }
  other_did_nothing_ += stats.did_nothing() ? 1 : 0;
  other_replaced_ += replaced ? 1 : 0;
  other_read_programs_.add(stats.events, true);
  ++other_process_count_;
  --ended_;
  if (last_process_ == &ended) last_process_ = nullptr;
  processes_.erase(ended.index);
}

Stats::Process* Stats::known_process(ProcessIndex index) {
  if (last_process_ && last_process_->index == index) return last_process_;
  const auto found = processes_.find(index);
  if (found == processes_.end()) return nullptr;
  return last_process_ = &found->second;
}

/// The process image that runs under a pid now.
Stats::Process* Stats::process_of(std::int32_t pid) {
  const auto image = images_.find(pid);
  return image == images_.end() ? nullptr : known_process(image->second);
}

Stats::Process& Stats::process_at(ProcessIndex index, const Registry& registry, std::uint64_t time_ns) {
  time_ns = std::max(time_ns, shown_from_ns_);
  Process* process = known_process(index);
  if (!process) {
    process = last_process_ = &processes_.try_emplace(index, bytes_, shown_from_ns_).first->second;
    process->index = index;
    process->stats.begin_ns = time_ns;
    process->learn(registry.process(index));
    process->charge(process->stats.exe.size());
  }
  process->stats.begin_ns = std::min(process->stats.begin_ns, std::max(time_ns, process->shown_from_ns));
  return *process;
}

void Stats::add_switch(const Event& event, const Batch& batch, const Registry& registry) {
  const auto change = batch.payload_as<SchedSwitch>(event);
  if (!change) return;
  // Without events of processes it is unknown which switches are whose.
  scheduler_seen_ = !not_recorded_.has(EventKind::process);
  for (const Thread& thread : {change->prev, change->next}) {
    if (Process* const process = thread.tracked ? process_of(thread.pid) : nullptr) process->is_tracked(event.time);
  }
  // A thread whose first event is that it leaves a cpu was on it since its process was tracked: its entering would have
  // been seen. Every program begins like this.
  const Thread& prev = change->prev;
  const bool is_new =
      prev.tracked && event.time > switches_since_ns_ && !threads_.is_full() && !threads_.current(prev.tid, event.time);
  if (is_new) {
    on_thread_interval({.pid = prev.pid,
                        .tid = prev.tid,
                        .domain = prev.domain,
                        .state = ThreadState::on_cpu,
                        .begin_ns = switches_since_ns_,
                        .end_ns = event.time});
  }
  threads_.add(event, batch, registry);
}

void Stats::add_sample(const Event& event, const Batch& batch, const Registry& registry) {
  const auto sample = batch.payload_as<Sample>(event);
  if (!sample || event.id != static_cast<std::uint16_t>(SampleKind::on_cpu)) return;
  const Process* const process = known_process(sample->process);
  if (!process) return;
  const auto domain = static_cast<std::size_t>(sample->domain);
  const bool in_phase = acts_for_domain(*sample, SampleKind::on_cpu) && domain < process->domains.size() &&
                        process->domains[domain].current && process->domains[domain].current->pause_since_ns;
  // Old recordings have no weights: then each stands for as much as another.
  sampled_.push_back({.process = sample->process,
                      .stack = sample->stack,
                      .ns = std::max<std::uint64_t>(sample->weight, 1),
                      .in_phase = in_phase});
  count_samples(registry, false);
}

/// Names come after the samples while programs are traced. At the end stacks without them stay unknown.
void Stats::count_samples(const Registry& registry, bool is_end) {
  const StackTable& stacks = registry.stacks();
  for (; !sampled_.empty(); sampled_.pop_front()) {
    const Sampled& sampled = sampled_.front();
    if (!is_end && sampled_.size() < max_sampled && stacks.is_reserved(sampled.stack)) return;
    Process* const process = known_process(sampled.process);
    if (!process) continue;
    process->sampled_ns = saturating_sum(process->sampled_ns, sampled.ns);
    if (sampled.in_phase || is_below_gc_entry(sampled.stack, stacks))
      process->gc_sampled_ns = saturating_sum(process->gc_sampled_ns, sampled.ns);
  }
}

void Stats::on_thread_interval(const ThreadInterval& interval) {
  if (interval.state != ThreadState::on_cpu) return;
  Process* const process = process_of(interval.pid);
  if (!process || !process->stats.cpu_since_ns) return;
  process->cpu_ns += overlap(interval, *process->stats.cpu_since_ns, UINT64_MAX);
  Incarnation* const domain = process->domain_during(domain_of(interval), interval.begin_ns);
  if (domain) {
    domain->tally.cpu_ns += overlap(interval, domain->begin_ns, domain->end_or(UINT64_MAX));
  } else if (process->is_merged(domain_of(interval))) {
    process->others.cpu_ns += overlap(interval, *process->stats.cpu_since_ns, UINT64_MAX);
  }
}

/// The present intervals of the threads on cpus.
std::vector<ThreadInterval> Stats::running() const {
  std::vector<ThreadInterval> intervals;
  threads_.each_cpu([&](std::uint32_t, const RunningThread& running) {
    const auto interval = threads_.current(running.thread.tid, now_ns_);
    if (!running.left_unseen && interval && interval->state == ThreadState::on_cpu) intervals.push_back(*interval);
  });
  return intervals;
}

Stats::Incarnation* Stats::domain_at(const DomainLife& life) {
  Process* const process = known_process(life.process);
  return process && life.domain < process->domains.size() ? process->domains[life.domain].current.get() : nullptr;
}

/// The process of a domain that is merged and runs; else null.
Stats::Process* Stats::merged_process(const DomainLife& life) {
  Process* const process = known_process(life.process);
  return process && process->is_merged(life.domain) ? process : nullptr;
}

void Stats::on_domain_begin(const DomainLife& life, std::uint64_t time_ns, bool certain) {
  if (options_.utilization) utilization_.begin_domain(life, time_ns, certain);
  Process* const process = known_process(life.process);
  if (!process) return;
  if (process->is_merged(life.domain)) {
    Process::Domain& merged = process->domains[life.domain];
    if (!std::exchange(merged.merged_adopted, true)) return;
    process->end_merged(merged, now_ns_);
  }
  if (Incarnation* const now = domain_at(life); now && now->adopted)
    process->retire(std::move(process->domains[life.domain].current), now->last_ns, options_.ended_domains);
  Incarnation& domain = process->domain_at(life.domain, time_ns);
  domain.adopted = true;
  // A domain without a spawn was there before its ring was read.
  if (!certain && life.incarnation == 1)
    domain.begin_ns = std::min(domain.begin_ns, process->ring_ns.value_or(std::max(time_ns, shown_from_ns_)));
}

void Stats::on_domain_end(const DomainLife& life, std::uint64_t time_ns) {
  utilization_.end_domain(life, time_ns);
  if (Process* const merged = merged_process(life)) merged->end_merged(merged->domains[life.domain], now_ns_);
  if (!domain_at(life)) return;
  Process& process = *known_process(life.process);
  process.retire(std::move(process.domains[life.domain].current), time_ns, options_.ended_domains);
}

void Stats::on_phase_begin(const DomainLife& life, const PhaseBegin& phase) {
  if (phase.phase >= Tally::phase_ids) return;
  if (Process* const merged = merged_process(life)) ++merged->others.phases[phase.phase];
  Incarnation* const domain = domain_at(life);
  if (!domain) return;
  const std::uint64_t count = ++domain->tally.phases[phase.phase];
  Process& process = *known_process(life.process);
  std::uint64_t& greatest = process.greatest[phase.phase];
  if (count <= greatest) return;
  greatest = count;
  // Each domain has this phase; the first one counts.
  const auto cycle_end = find_phase(life.family, "major_gc_stw");
  if (cycle_end && static_cast<std::uint16_t>(*cycle_end) == phase.phase)
    process.stats.cycles.add(phase.time_ns, process.stats.heap_words.last());
}

void Stats::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  utilization_.begin_pause(life, root.time_ns);
  if (Process* const merged = merged_process(life)) merged->other_pauses.begin(root.time_ns);
  Incarnation* const domain = domain_at(life);
  if (!domain) return;
  domain->pause_since_ns = root.time_ns;
  domain->pause_tid = scheduler_seen_ ? threads_.writer_of(life.pid, life.domain).value_or(0) : 0;
  if (domain->pause_tid != 0) domain->pause_begin = threads_.at(domain->pause_tid, root.time_ns);
}

void Stats::on_pause_end(const DomainLife& life, const PhaseEnd& root) {
  utilization_.add_pause(life, root.begin_ns, root.end_ns);
  if (Process* const merged = merged_process(life)) merged->other_pauses.end(root.end_ns);
  Incarnation* const domain = domain_at(life);
  if (!domain) return;
  domain->pause_since_ns.reset();
  const std::uint64_t duration_ns = distance(root.begin_ns, root.end_ns);
  domain->tally.gc_ns = saturating_sum(domain->tally.gc_ns, duration_ns);
  if (domain->pause_tid == 0) {
    domain->tally.gc_unseen_ns = saturating_sum(domain->tally.gc_unseen_ns, duration_ns);
    return;
  }
  const auto time = ThreadTracker::between(domain->pause_begin, threads_.at(domain->pause_tid, root.end_ns));
  domain->tally.gc_cpu_ns = saturating_sum(domain->tally.gc_cpu_ns, time.on_cpu);
  domain->tally.gc_unseen_ns = saturating_sum(domain->tally.gc_unseen_ns, time.unknown);
  const auto major = find_phase(life.family, "major");
  if (major && static_cast<std::uint16_t>(*major) == root.phase)
    domain->tally.major_cpu_ns = saturating_sum(domain->tally.major_cpu_ns, time.on_cpu);
}

void Stats::on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) {
  utilization_.lose(life, root.begin_ns);
  if (Process* const merged = merged_process(life)) {
    const bool ended = reason == Unfinished::ended;
    merged->other_pauses.end(ended ? root.end_ns : root.begin_ns);
    merged->others.unfinished += ended ? 0 : 1;
  }
  Incarnation* const domain = domain_at(life);
  if (!domain) return;
  domain->pause_since_ns.reset();
  Tally& tally = domain->tally;
  switch (reason) {
    case Unfinished::ended:
      tally.gc_ns = saturating_sum(tally.gc_ns, distance(root.begin_ns, root.end_ns));
      return;
    case Unfinished::lost:  // it went on for as long as anything is known, at least
      tally.gc_ns = saturating_sum(tally.gc_ns, distance(root.begin_ns, domain->last_ns));
      break;
    case Unfinished::no_end:
    case Unfinished::clock:
      break;
  }
  ++tally.unfinished;
}

}  // namespace rtev
