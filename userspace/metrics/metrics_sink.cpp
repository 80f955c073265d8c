// SPDX-License-Identifier: MIT
#include "metrics/metrics_sink.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <span>
#include <utility>

#include "analysis/pauses/blame.hpp"
#include "base/clock.hpp"
#include "base/enum_names.hpp"
#include "base/escape.hpp"
#include "base/saturating_sum.hpp"

namespace rtev {
namespace {

constexpr std::string_view other_group = "other";

bool is_action(const Event& event, ProcessAction action) {
  return event.id == static_cast<std::uint16_t>(action);
}

/// What a counter of the runtime counts for.
struct CounterUse {
  enum class What : std::uint8_t { nothing, minor_bytes, promoted_bytes, major_words, heap, forced };
  What what = What::nothing;
  std::size_t index = 0;  ///< in heap_counters() or trigger_counters()
};
using CounterUses = std::array<CounterUse, Tally::counter_ids>;

CounterUses uses_in(Family family) {
  using What = CounterUse::What;
  CounterUses uses{};
  for (std::size_t id = 0; id < uses.size(); ++id) {
    const std::string_view name = counter_name(family, static_cast<std::uint16_t>(id));
    const auto heap = std::ranges::find(heap_counters(), name), forced = std::ranges::find(trigger_counters(), name);
    if (name == "minor_allocated") uses[id].what = What::minor_bytes;
    if (name == "minor_promoted") uses[id].what = What::promoted_bytes;
    if (name == "major_allocated_words") uses[id].what = What::major_words;
    if (heap != heap_counters().end())
      uses[id] = {What::heap, static_cast<std::size_t>(heap - heap_counters().begin())};
    if (forced != trigger_counters().end())
      uses[id] = {What::forced, static_cast<std::size_t>(forced - trigger_counters().begin())};
  }
  return uses;
}

CounterUse use_of(Family family, std::uint16_t id) {
  static const CounterUses before = uses_in(Family::before_5_3), since = uses_in(Family::since_5_3);
  return id < before.size() ? (family == Family::before_5_3 ? before : since)[id] : CounterUse{};
}

/// Counts of a domain that take part in those of its process.
void count_for_all(std::uint64_t more, std::uint64_t& of_domain, std::uint64_t& greatest, std::uint64_t& of_group) {
  of_domain += more;
  if (of_domain <= greatest) return;
  of_group += of_domain - greatest;
  greatest = of_domain;
}

PauseKind kind_of(const std::array<bool, phase_family_count>& has) {
  const auto any = [&](std::initializer_list<PhaseFamily> families) {
    return std::ranges::any_of(families, [&](PhaseFamily family) { return has[static_cast<std::size_t>(family)]; });
  };
  if (any({PhaseFamily::explicit_call})) return PauseKind::explicit_call;
  if (any({PhaseFamily::mark, PhaseFamily::sweep, PhaseFamily::major, PhaseFamily::compact})) return PauseKind::major;
  if (any({PhaseFamily::minor})) return PauseKind::minor;
  return any({PhaseFamily::stw, PhaseFamily::barrier}) ? PauseKind::stw : PauseKind::other;
}

}  // namespace

std::string_view to_string(PauseKind kind) {
  static constexpr std::string_view names[]{"explicit", "major", "minor", "stw", "other"};
  return name_at(names, kind);
}

std::string_view to_string(ExitReason reason) {
  static constexpr std::string_view names[]{"exit", "signal", "exec"};
  return name_at(names, reason);
}

MetricsSink::MetricsSink(MetricsOptions options)
    : options_(std::move(options)),
      user_(options_.user),
      groups_(options_.max_groups, [this](Group& removed) { empty(removed); }) {}

void MetricsSink::header(const RunHeader& header) {
  header_ = header;
  now_ns_ = header.start_ns;
  start_ticks_ = boot_ticks();
}

void MetricsSink::advance(std::uint64_t time_ns, const Registry& registry) {
  now_ns_ = std::max(now_ns_, time_ns);
  registry_ = &registry;
  name_again(registry);
  if (now_ns_ >= next_regroup_ns_) regroup(registry);
  if (now_ns_ >= next_note_events_ns_) {
    next_note_events_ns_ = now_ns_ + note_events_ns;
    for (auto& [index, process] : processes_) note_events(process, registry.process(index));
    std::erase_if(ended_, [&](ProcessIndex index) { return registry.process(index).pid == 0; });
  }
  registry_ = nullptr;
}

/// On a busy host the service of a process may be known late. What was counted until then stays where it is.
void MetricsSink::name_again(const Registry& registry) {
  for (auto at = nameless_.begin(); at != nameless_.end();) {
    const ProcessInfo& info = registry.process(*at);
    if (info.service.is_empty()) {
      ++at;
      continue;
    }
    Process& process = processes_.at(*at);
    at = nameless_.erase(at);
    if (Group* const group = group_for(info)) {
      move(process, *group);
    } else if (process.group != &other_) {
      move(process, fold(info));
    }
  }
}

/// Processes whose group had no room get it when there is some, as services run for long.
void MetricsSink::regroup(const Registry& registry) {
  next_regroup_ns_ = now_ns_ + regroup_ns;
  for (auto& [index, process] : processes_) {
    const ProcessInfo& info = registry.process(index);
    if (process.group != &other_ || info.pid == 0) continue;
    if (Group* const group = group_for(info)) move(process, *group);
  }
}

/// Whether its events are read now: once they were, they may have been paused since.
void MetricsSink::note_events(Process& process, const ProcessInfo& info) {
  auto& counts = process.group->figures.processes_by_events;
  --counts[static_cast<std::size_t>(process.events)];
  process.events = info.ring == RingState::paused ? EventsRead::off : events_read(info);
  ++counts[static_cast<std::size_t>(process.events)];
  process.group->figures.has_events |= process.events == EventsRead::yes;
}

/// To another group, or to the same. What was counted until then stays where it is.
void MetricsSink::move(Process& process, Group& to) {
  Group& from = *process.group;
  --from.figures.processes;
  ++to.figures.processes;
  --from.figures.processes_by_events[static_cast<std::size_t>(process.events)];
  ++to.figures.processes_by_events[static_cast<std::size_t>(process.events)];
  from.figures.domains -= process.running_domains;
  to.figures.domains += process.running_domains;
  to.figures.has_events |= process.events == EventsRead::yes;
  for (std::size_t entry = 0; entry < process.heap.size(); ++entry) {
    from.figures.heap[entry] -= process.heap[entry];
    to.figures.heap[entry] += process.heap[entry];
    to.figures.heap_seen[entry] |= process.heap[entry] != 0;
  }
  from.last_ns = to.last_ns = now_ns_;
  process.group = &to;
}

/// Of a group that others need more.
void MetricsSink::empty(Group& removed) {
  for (auto& [index, process] : processes_)
    if (process.group == &removed) move(process, fold(registry_->process(index)));
}

void MetricsSink::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  const bool wants_user = options_.user.any();
  for (const Event& event : batch.events()) {
    ++events_[static_cast<std::size_t>(event.kind)];
    switch (event.kind) {
      case EventKind::counter:
        if (const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot)) add_counter(event, *ring);
        break;
      case EventKind::user_unit:
      case EventKind::user_int:
      case EventKind::user_begin:
      case EventKind::user_end:
      case EventKind::user_custom:
        if (const RingInfo* const ring = wants_user ? registry.ring(Source::unpack(event.source).slot) : nullptr)
          user_.add(event, batch, *ring, group_of(ring->process).figures.user);
        analyzer_.add(event, batch, registry);
        break;
      case EventKind::alloc:
      case EventKind::sample:
        break;
      case EventKind::process:
        add_process(event, batch);
        break;
      case EventKind::usage:
        add_usage(event, batch);
        break;
      case EventKind::lost:
        add_loss(event, batch);
        analyzer_.add(event, batch, registry);
        break;
      case EventKind::lifecycle:
        if (const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot);
            ring != nullptr && is_lifecycle(event, Lifecycle::domain_spawn))
          ++group_of(ring->process).figures.domain_spawns;
        analyzer_.add(event, batch, registry);
        break;
      default:
        analyzer_.add(event, batch, registry);
    }
  }
  if (!batch.events().empty()) now_ns_ = std::max(now_ns_, batch.events().back().time);
  registry_ = nullptr;
}

void MetricsSink::add_process(const Event& event, const Batch& batch) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return analyzer_.add(event, batch, *registry_);
  if (is_action(event, ProcessAction::exit)) {
    // What is open ends before the process is forgotten.
    analyzer_.add(event, batch, *registry_);
    return end_process(record->process, record->detail);
  }
  Process* const process = process_at(record->process);
  const bool is_found = is_action(event, ProcessAction::found);
  const bool is_fork = is_action(event, ProcessAction::fork);
  const bool has_started = is_action(event, ProcessAction::exec);
  // A program that began after the run did is found, too, if the record of its exec is late or was dropped.
  const bool is_new = is_found && registry_->process(record->process).start_ticks > start_ticks_;
  if (process != nullptr && (has_started || is_new)) ++process->group->figures.starts;
  if (process != nullptr && is_fork) ++process->group->figures.forks;
  if (process != nullptr && (has_started || is_fork || is_found))
    images_[registry_->process(record->process).pid] = record->process;
  if (process != nullptr) note_events(*process, registry_->process(record->process));
  analyzer_.add(event, batch, *registry_);
}

void MetricsSink::end_process(ProcessIndex index, std::int64_t status) {
  ended_.insert(index);
  const auto found = processes_.find(index);
  if (found == processes_.end()) return;
  Process& process = found->second;
  GroupFigures& figures = process.group->figures;
  const bool by_signal = status >= 0 && WIFSIGNALED(static_cast<int>(status));
  const ExitReason reason = status == exit_by_exec ? ExitReason::exec
                            : by_signal            ? ExitReason::signal
                                                   : ExitReason::exit;
  ++figures.exits[static_cast<std::size_t>(reason)];
  --figures.processes;
  --figures.processes_by_events[static_cast<std::size_t>(process.events)];
  for (std::size_t entry = 0; entry < process.heap.size(); ++entry) figures.heap[entry] -= process.heap[entry];
  process.group->last_ns = now_ns_;
  if (const auto image = images_.find(registry_->process(index).pid); image != images_.end() && image->second == index)
    images_.erase(image);
  user_.forget(index);
  last_process_ = nullptr;
  nameless_.erase(index);
  processes_.erase(found);
}

void MetricsSink::add_counter(const Event& event, const RingInfo& ring) {
  const CounterUse use = use_of(registry_->family_of(event).value_or(Family::since_5_3), event.id);
  if (use.what == CounterUse::What::nothing) return;
  Process* const process = read_process_at(ring.process);
  GroupFigures& figures = process != nullptr ? process->group->figures : group_of(ring.process).figures;
  switch (use.what) {
    case CounterUse::What::minor_bytes:
      figures.minor_bytes = saturating_sum(figures.minor_bytes, event.value);
      break;
    case CounterUse::What::promoted_bytes:
      figures.promoted_bytes = saturating_sum(figures.promoted_bytes, event.value);
      break;
    case CounterUse::What::major_words:
      figures.major_words = saturating_sum(figures.major_words, event.value);
      break;
    case CounterUse::What::forced:
      ++figures.forced[use.index];
      break;
    case CounterUse::What::heap:
      if (process != nullptr) {
        std::uint64_t& last = process->domains[Source::unpack(event.source).domain].heap[use.index];
        process->heap[use.index] += event.value - last;
        figures.heap[use.index] += event.value - last;
        figures.heap_seen[use.index] = true;
        last = event.value;
      }
      break;
    case CounterUse::What::nothing:
      break;
  }
}

void MetricsSink::add_loss(const Event& event, const Batch& batch) {
  const auto loss = batch.payload_as<Loss>(event);
  if (!loss) return;
  const auto [slot, domain] = Source::unpack(event.source);
  if (const RingInfo* const ring = registry_->ring(slot)) {
    user_.forget(ring->process, domain);
    GroupFigures& figures = group_of(ring->process).figures;
    if (event.id < ring_loss_reason_count) figures.lost_words[event.id] += loss->words;
    figures.probe_gaps += event.id == static_cast<std::uint16_t>(LossReason::unprobed);
  } else {
    (is_sched_loss(event) ? sched_dropped_ : samples_dropped_) += loss->words;
  }
}

MetricsSink::Process* MetricsSink::process_at(ProcessIndex index) {
  if (last_process_ != nullptr && last_index_ == index) return last_process_;
  auto found = processes_.find(index);
  if (found == processes_.end()) {
    const ProcessInfo& info = registry_->process(index);
    // A late event would add it for ever.
    if (info.pid == 0 || ended_.contains(index)) return nullptr;
    found = processes_.try_emplace(index).first;
    Group* const group = group_for(info);
    found->second.group = group != nullptr ? group : &fold(info);
    ++found->second.group->figures.processes;
    ++found->second.group->figures.processes_by_events[static_cast<std::size_t>(found->second.events)];
    if (info.service.is_empty()) nameless_.insert(index);
  }
  last_index_ = index;
  last_process_ = &found->second;
  last_process_->group->last_ns = now_ns_;
  return last_process_;
}

/// One with an event.
MetricsSink::Process* MetricsSink::read_process_at(ProcessIndex index) {
  Process* const process = process_at(index);
  if (process != nullptr) process->group->figures.has_events = true;
  return process;
}

/// Of a process with an event.
Group& MetricsSink::group_of(ProcessIndex index) {
  if (const Process* const process = read_process_at(index)) return *process->group;
  const ProcessInfo& info = registry_->process(index);
  Group* const named = info.pid != 0 ? group_for(info) : nullptr;
  Group& group = named != nullptr ? *named : other_;
  group.figures.has_events = true;
  return group;
}

/// Null: it is counted in "other".
Group* MetricsSink::group_for(const ProcessInfo& info) {
  const std::string name = options_.groups.name_of(info);
  return name == other_group ? nullptr : groups_.at(name, info.user, now_ns_);
}

/// Counts a process in "other".
Group& MetricsSink::fold(const ProcessInfo& info) {
  ++folded_;
  const std::string name = on_folded_ ? options_.groups.name_of(info) : std::string(other_group);
  if (name != other_group) std::exchange(on_folded_, nullptr)(name, info.user);
  return other_;
}

void MetricsSink::on_domain_seen(const DomainLife& domain, std::uint64_t /*time_ns*/, bool /*certain*/) {
  Process* const process = read_process_at(domain.process);
  if (process == nullptr) return;
  ++process->group->figures.domains;
  ++process->running_domains;
}

void MetricsSink::on_domain_gone(const DomainLife& domain, std::uint64_t /*time_ns*/) {
  Process* const process = process_at(domain.process);
  if (process == nullptr) return;
  --process->group->figures.domains;
  --process->running_domains;
  user_.forget(domain.process, domain.domain);
  const auto found = process->domains.find(domain.domain);
  if (found == process->domains.end()) return;
  // Other domains take over its heap.
  forget_heap(*process, found->second);
}

void MetricsSink::forget_heap(Process& process, Domain& domain) {
  for (std::size_t entry = 0; entry < domain.heap.size(); ++entry) {
    process.heap[entry] -= domain.heap[entry];
    process.group->figures.heap[entry] -= domain.heap[entry];
  }
  domain.heap = {};
}

void MetricsSink::on_condition_wait(const DomainLife& domain, std::uint64_t ns) {
  group_of(domain.process).figures.condition_wait_ns += ns;
}

void MetricsSink::on_unfinished(const DomainLife& domain, const PhaseEnd& /*root*/, Unfinished reason) {
  ++group_of(domain.process).figures.unfinished[static_cast<std::size_t>(reason)];
}

void MetricsSink::on_pause_details(PauseDetails&& pause) {
  Process late;
  Process* process = process_at(pause.domain.process);
  if (process == nullptr) process = &late;
  GroupFigures& figures = group_of(pause.domain.process).figures;
  Domain& domain = process->domains[pause.domain.domain];
  std::array<bool, phase_family_count> has{};
  for (const PhaseTree::Node& node : pause.phases.nodes()) {
    const PhaseFacts& facts = facts_of(pause.domain.family, node.phase);
    const auto family = static_cast<std::size_t>(facts.family);
    has[family] = true;
    figures.phase_ns[family] += node.own_ns;
    if (facts.is_minor)
      count_for_all(node.count, domain.minor_collections, process->minor_collections, figures.minor_collections);
    if (facts.is_major_cycle)
      count_for_all(node.count, domain.major_cycles, process->major_cycles, figures.major_cycles);
    if (facts.is_compaction) count_for_all(node.count, domain.compactions, process->compactions, figures.compactions);
    if (facts.is_major_slice) figures.major_slices += node.count;
    if (facts.explicit_call) figures.explicit_calls[*facts.explicit_call] += node.count;
  }
  const PauseKind kind = kind_of(has);
  figures.pauses[static_cast<std::size_t>(kind)].record(pause.duration_ns());
  // All switches in pauses are in the stream: where none says otherwise, the thread is on its CPU.
  figures.gc_cpu_ns += pause.time.on_cpu + (has_usage_ ? pause.time.unknown : 0);
  figures.wait_runnable_ns += pause.besides.runnable;
  figures.wait_blocked_ns += pause.besides.blocked();
  figures.wait_stw_ns += pause.start_wait_ns + pause.finish_wait_ns;
  add_sections(pause, figures);

  if (options_.pause_span_ns == 0 || pause.duration_ns() < options_.pause_span_ns || !spans_.wants(pause.end_ns))
    return;
  const ProcessInfo& info = registry_->process(pause.domain.process);
  if (info.pid == 0) return;  // it is forgotten
  const SwitchesSeen seen = analyzer_.scheduler_seen() ? SwitchesSeen::ocaml : SwitchesSeen::none;
  spans_.add({.begin_ns = pause.begin_ns,
              .end_ns = pause.end_ns,
              .group = options_.groups.name_of(info),
              .service = escaped(info.service.name),
              .version = escaped(info.service.version),
              .program = escaped(info.comm),
              .pid = info.pid,
              .domain = pause.domain.domain,
              .kind = std::string(to_string(kind)),
              .verdict = blame_text(pause, blame_of(pause), seen, registry_->stacks())});
}

/// Of the sections that its domain led, so that each counts once.
void MetricsSink::add_sections(const PauseDetails& pause, GroupFigures& figures) const {
  for (const PauseSection& part : pause.sections) {
    if (!part.own().leads) continue;
    figures.stw.record(part.time_ns);
    const StwDomain* const last = part.section->last_to_arrive();
    if (last != nullptr && last->arrived_ns >= part.section->begin_ns)
      figures.stw_arrival.record(last->arrived_ns - part.section->begin_ns);
  }
}

Group* MetricsSink::group_of_pid(std::int32_t pid) {
  const auto image = images_.find(pid);
  const auto process = image != images_.end() ? processes_.find(image->second) : processes_.end();
  return process != processes_.end() ? process->second.group : nullptr;
}

void MetricsSink::add_usage(const Event& event, const Batch& batch) {
  const auto usage = batch.payload_as<ThreadUsage>(event);
  if (!usage) return;
  has_usage_ = true;
  Group* const group = group_of_pid(usage->pid);
  if (group == nullptr) return;
  group->figures.cpu_ns[static_cast<std::size_t>(usage->role)] += usage->cpu_ns;
  for (const std::uint64_t ns : std::span(usage->delays_ns).first(usage->delay_count))
    group->figures.sched_delay.record(ns);
}

void MetricsSink::on_thread_interval(const ThreadInterval& interval) {
  if (has_usage_ || (interval.state != ThreadState::on_cpu && interval.state != ThreadState::runnable)) return;
  Group* const group = group_of_pid(interval.pid);
  if (group == nullptr) return;
  const std::uint64_t ns = interval.end_ns - std::min(interval.begin_ns, interval.end_ns);
  if (interval.state == ThreadState::runnable) {
    group->figures.sched_delay.record(ns);
  } else {
    group->figures.cpu_ns[static_cast<std::size_t>(analyzer_.threads().role(interval.tid))] += ns;
  }
}

/// Adds what threads that are on a CPU have used since they got there.
void MetricsSink::update_cpu() {
  std::map<Group*, std::array<std::uint64_t, thread_role_count>> running;
  analyzer_.threads().each_cpu([&](std::uint32_t, const RunningThread& on_cpu) {
    const auto interval = analyzer_.threads().current(on_cpu.thread.tid, now_ns_);
    if (has_usage_ || on_cpu.left_unseen || !interval || interval->state != ThreadState::on_cpu) return;
    Group* const group = group_of_pid(interval->pid);
    if (group == nullptr) return;
    const auto role = static_cast<std::size_t>(analyzer_.threads().role(interval->tid));
    running[group][role] += interval->end_ns - std::min(interval->begin_ns, interval->end_ns);
  });
  const auto update = [&](std::string_view /*name*/, Group& group) {
    for (std::size_t role = 0; role < thread_role_count; ++role) {
      std::uint64_t& shown = group.figures.shown_cpu_ns[role];
      const auto more = running.find(&group);
      shown = std::max(shown, group.figures.cpu_ns[role] + (more != running.end() ? more->second[role] : 0));
    }
  };
  groups_.each(update);
  update(other_group, other_);
}

}  // namespace rtev
