// SPDX-License-Identifier: MIT
#include "analysis/diff/recorded_run_sink.hpp"

#include <algorithm>
#include <ranges>

#include "analysis/diff/runtime_ids.hpp"
#include "analysis/gc_stacks.hpp"
#include "analysis/profile/call_tree.hpp"
#include "analysis/read_programs.hpp"
#include "analysis/stats/stats_figures.hpp"
#include "base/program_names.hpp"
#include "base/text_format.hpp"
#include "stream/stw_phases.hpp"

namespace rtev {
namespace {

constexpr double bytes_in_word = 8;

}  // namespace

void RecordedRunSink::header(const RunHeader& header) {
  run_.version = header.version;
  run_.not_recorded = header.not_recorded;
  finder_.header(header);
  run_.host = header.host;
  run_.kernel = header.kernel;
  run_.run_ns = header.start_ns;
  run_.run_realtime_ns = header.start_realtime_ns;
  run_.start_ns = last_ns_ = header.begin_ns();
  clock_.begin(run_.start_ns);
}

void RecordedRunSink::consume(const Batch& batch, const Registry& registry) {
  for (const Event& event : batch.events()) {
    last_ns_ = std::max(last_ns_, event.time);
    reach(event.time);
    add(event, batch, registry);
  }
}

/// Makes slices longer until they reach a time.
void RecordedRunSink::reach(std::uint64_t time_ns) {
  while (!clock_.reaches(time_ns)) [[unlikely]] {
    clock_.widen();
    for (const auto& program : programs_) {
      program->record.sums.halve();
      for (SlicedDistribution& measured : program->record.measured) measured.halve(budget_);
      for (SlicedDistribution& span : program->record.spans | std::views::values) span.halve(budget_);
    }
    for (std::vector<SampleCount>& counts : samples_ | std::views::values) {
      std::vector<SampleCount> merged;
      for (const SampleCount& count : counts) {
        const auto slice = static_cast<std::uint16_t>(count.slice / 2);
        if (!merged.empty() && merged.back().slice == slice) {
          merged.back().count += count.count;
        } else {
          merged.push_back({slice, count.count});
        }
      }
      sample_cells_ -= counts.size() - merged.size();
      counts = std::move(merged);
    }
  }
}

void RecordedRunSink::add(const Event& event, const Batch& batch, const Registry& registry) {
  dropped_.add(event, batch);
  switch (event.kind) {
    case EventKind::process:
      return add_process(event, batch, registry);
    case EventKind::sched_switch:
      run_.scheduler_seen = true;
      [[fallthrough]];
    case EventKind::wakeup:
      return threads_.add(event, batch, registry);
    case EventKind::sample:
      return sample(event, batch);
    default:
      break;
  }
  if (is_sched_loss(event)) {
    threads_.add(event, batch, registry);
    if (const auto loss = batch.payload_as<Loss>(event)) {
      for (const auto& program : programs_) {
        count(*program, SliceSum::sched_lossy, loss->from_ns);
        spread(*program, SliceSum::sched_lossy, loss->from_ns, std::min(loss->to_ns, last_ns_));
      }
    }
    return;
  }
  if (lost_samples(event)) {
    if (const auto loss = batch.payload_as<Loss>(event)) run_.samples_dropped += loss->words;
    return;
  }
  if (const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot))
    add_ring_event(event, batch, *ring, registry);
}

void RecordedRunSink::add_process(const Event& event, const Batch& batch, const Registry& registry) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return;
  const auto is = [&](ProcessAction action) { return event.id == static_cast<std::uint16_t>(action); };
  if (is(ProcessAction::ring) || is(ProcessAction::probe)) process_at(record->process, registry, event.time);
  finder_.add(event, batch, registry);
  threads_.add(event, batch, registry);
  if (is(ProcessAction::exit)) end_process(record->process, event.time);
}

void RecordedRunSink::add_ring_event(const Event& event, const Batch& batch, const RingInfo& ring,
                                     const Registry& registry) {
  Process* const process = process_at(ring.process, registry, event.time);
  if (process == nullptr) return;
  finder_.add(event, batch, registry);
  const bool is_user = is_user_event(event.kind);
  if (event.kind != EventKind::counter && !is_user) return;
  Domain* const domain = domain_at(std::uint64_t{ring.process} << 32 | event.source, ring.process);
  if (domain == nullptr) return;
  if (is_user) return user_event(*process->program, *domain, event, batch, ring);
  counter(*process->program, *process, *domain, event, registry.family_of(event).value_or(Family::since_5_3));
}

/// Null for a process that ended, for an unknown one, and for one of a program that there is no room for.
RecordedRunSink::Process* RecordedRunSink::process_at(ProcessIndex index, const Registry& registry,
                                                      std::uint64_t time_ns) {
  if (const auto known = processes_.find(index); known != processes_.end()) return &known->second;
  if (left_out_.contains(index) || ended_.contains(index)) return nullptr;
  const ProcessInfo& info = registry.process(index);
  if (info.pid == 0) return nullptr;
  Program* const program = program_of(info);
  if (program == nullptr) {
    if (left_out_.size() < max_remembered) left_out_.insert(index);
    return nullptr;
  }
  Process& process = processes_[index];
  process = {.program = program, .pid = info.pid, .begin_ns = std::max(time_ns, run_.start_ns)};
  images_[info.pid] = index;
  settle(*program, time_ns);
  ++program->level.processes;
  ++program->record.processes;
  constexpr std::size_t max_versions = 4;
  if (!info.version.empty() && program->record.versions.size() < max_versions)
    program->record.versions.insert(info.version);
  return &process;
}

RecordedRunSink::Program* RecordedRunSink::program_of(const ProcessInfo& info) {
  const std::string name(full_name(info.names()));
  if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
  if (programs_.size() >= max_programs) return nullptr;
  Program& program = *programs_.emplace_back(new Program{.index = programs_.size()});
  program.record.name = name;
  program.settled_ns = run_.start_ns;
  return by_name_[name] = &program;
}

RecordedRunSink::Domain* RecordedRunSink::domain_at(std::uint64_t key, ProcessIndex process) {
  if (recent_domain_.second != nullptr && recent_domain_.first == key) return recent_domain_.second;
  auto known = domains_.find(key);
  if (known == domains_.end()) {
    if (domains_.size() >= max_domains) return nullptr;
    known = domains_.try_emplace(key).first;
    known->second.process = process;
  }
  recent_domain_ = {key, &known->second};
  return &known->second;
}

/// Adds up what runs, until now.
void RecordedRunSink::settle(Program& program, std::uint64_t time_ns) {
  if (time_ns <= program.settled_ns) return;
  const Level& level = program.level;
  if (level.processes > 0) {
    const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
    clock_.each(program.settled_ns, time_ns, [&](std::size_t slice, std::uint64_t ns) {
      SlicedSums& sums = program.record.sums;
      const double time = number(ns);
      sums.at(slice, SliceSum::running_ns) += time;
      sums.at(slice, SliceSum::process_ns) += time * number(level.processes);
      sums.at(slice, SliceSum::domain_ns) += time * number(level.domains);
      sums.at(slice, SliceSum::heap_ns) += time * number(level.heaps);
      sums.at(slice, SliceSum::heap_byte_ns) += time * level.heap_bytes;
    });
  }
  program.settled_ns = time_ns;
}

void RecordedRunSink::end_process(ProcessIndex index, std::uint64_t time_ns) {
  const auto known = processes_.find(index);
  if (known == processes_.end()) return;
  Process& process = known->second;
  Program& program = *process.program;
  settle(program, time_ns);
  const auto first = domains_.lower_bound(std::uint64_t{index} << 32);
  const auto last = domains_.lower_bound(std::uint64_t{index + 1} << 32);
  for (Domain& domain : std::ranges::subrange(first, last) | std::views::values)
    program.level.heap_bytes -= domain.heap_bytes;
  domains_.erase(first, last);
  recent_domain_ = {};
  --program.level.processes;
  program.level.heaps -= process.knows_heap ? 1 : 0;
  if (program.level.heaps == 0) program.level.heap_bytes = 0;  // sums of doubles leave a rest
  if (const auto image = images_.find(process.pid); image != images_.end() && image->second == index)
    images_.erase(image);
  processes_.erase(known);
  if (ended_.size() < max_remembered) ended_.insert(index);
}

void RecordedRunSink::spread(Program& program, std::size_t sum, std::uint64_t begin_ns, std::uint64_t end_ns,
                             double weight) {
  clock_.each(begin_ns, end_ns, [&](std::size_t slice, std::uint64_t ns) {
    program.record.sums.at(slice, sum) += static_cast<double>(ns) * weight;
  });
}

void RecordedRunSink::count(Program& program, SliceSum sum, std::uint64_t time_ns, double amount) {
  program.record.sums.at(clock_.at(time_ns), sum) += amount;
}

void RecordedRunSink::measure(Program& program, SlicedDistribution& distribution, std::uint64_t begin_ns,
                              std::uint64_t end_ns) {
  if (end_ns < begin_ns) return;
  if (!distribution.record(clock_.at(end_ns), end_ns - begin_ns, budget_)) program.record.lacks_room = true;
}

void RecordedRunSink::counter(Program& program, Process& process, Domain& domain, const Event& event, Family family) {
  const auto value = static_cast<double>(event.value);
  switch (use_of_counter(family, event.id)) {
    case CounterUse::minor:
      program.record.fullest_minor_words =
          std::max(program.record.fullest_minor_words, event.value / static_cast<std::uint64_t>(bytes_in_word));
      return count(program, SliceSum::minor_bytes, event.time, value);
    case CounterUse::promoted:
      // The counter of the major heap includes it.
      if (family == Family::since_5_3) count(program, SliceSum::major_bytes, event.time, -value);
      return count(program, SliceSum::promoted_bytes, event.time, value);
    case CounterUse::major:
      return count(program, SliceSum::major_bytes, event.time, value * bytes_in_word);
    case CounterUse::heap:
      return set_heap(program, process, domain, value * bytes_in_word, event.time);
    case CounterUse::pool:
      domain.pool_words = value;
      return;
    case CounterUse::large:  // the last of those that the end of a cycle reports
      domain.large_words = value;
      if (family == Family::before_5_3)
        set_heap(program, process, domain, (domain.pool_words + value) * bytes_in_word, event.time);
      return;
    case CounterUse::none:
      return;
  }
}

void RecordedRunSink::set_heap(Program& program, Process& process, Domain& domain, double bytes,
                               std::uint64_t time_ns) {
  settle(program, time_ns);
  if (!std::exchange(process.knows_heap, true)) ++program.level.heaps;
  program.level.heap_bytes += bytes - domain.heap_bytes;
  domain.heap_bytes = bytes;
}

void RecordedRunSink::user_event(Program& program, Domain& domain, const Event& event, const Batch& batch,
                                 const RingInfo& ring) {
  if (event.kind == EventKind::user_begin) return domain.spans.begin({.event = event.id, .begin_ns = event.time});
  if (event.kind == EventKind::user_end) return end_span(program, domain.spans.end(event.id), event, ring);
  const auto what = libraries_.add(event, batch, ring);
  if (!what) return;
  switch (what->what) {
    case LibrarySpanEvent::What::begin:
      return domain.spans.begin(
          {.begin_ns = event.time, .of_library = true, .fiber = what->fiber, .name = std::string(what->name)});
    case LibrarySpanEvent::What::end:
      return end_span(program, domain.spans.end(*what), event, ring);
    case LibrarySpanEvent::What::exit:
      return domain.spans.end_fiber(*what->fiber);
  }
}

void RecordedRunSink::end_span(Program& program, const std::optional<OpenSpan>& span, const Event& event,
                               const RingInfo& ring) {
  if (!span) return;
  std::string name = span->name;
  if (!span->of_library && ring.user_event_name) name = ring.user_event_name(span->event);
  if (name.empty()) name = fmt::format("#{}", span->event);
  auto& spans = program.record.spans;
  if (spans.size() >= max_spans && !spans.contains(name)) {
    program.record.lacks_room = true;
    return;
  }
  measure(program, spans[name], span->begin_ns, event.time);
}

void RecordedRunSink::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  reach(last_ns_);
  finder_.finish(last_ns_);
  threads_.finish(last_ns_);
  dropped_.add(summary);
  run_.not_recorded.note(summary.events);
  for (const auto& program : programs_) settle(*program, last_ns_);
  name_samples(registry);
  run_.end_ns = last_ns_;
  run_.slice_ns = clock_.length_ns();
  run_.scheduler_dropped = dropped_.count();
  run_.truncated = !summary.complete;
  run_.rings_missed = summary.rings_missed;
  run_.processes_left_out = left_out_.size();
  for (const ProcessInfo& info : registry.processes()) {
    const std::string_view name = full_name(info.names());
    if (events_read(info) == EventsRead::off && run_.events_off.size() < max_programs &&
        !by_name_.contains(std::string(name)))
      run_.events_off.emplace(name);
  }
  for (const auto& program : programs_) run_.programs.push_back(std::move(program->record));
  std::ranges::sort(run_.programs, {}, &RecordedProgram::name);
}

RecordedRunSink::Place RecordedRunSink::place(const DomainLife& life) {
  const auto process = processes_.find(life.process);
  if (process == processes_.end()) return {};
  return {.process = &process->second, .domain = domain_at(life.key(), life.process)};
}

void RecordedRunSink::on_domain_begin(const DomainLife& life, std::uint64_t time_ns, bool certain) {
  const Place at = place(life);
  if (!at) return;
  settle(at.program(), time_ns);
  // A domain without a spawn was there before its ring was read.
  if (!certain && life.incarnation == 1)
    spread(at.program(), SliceSum::domain_ns, at.process->begin_ns, std::min(time_ns, at.program().settled_ns));
  ++at.program().level.domains;
}

void RecordedRunSink::on_domain_end(const DomainLife& life, std::uint64_t time_ns) {
  const Place at = place(life);
  if (!at) return;
  settle(at.program(), time_ns);
  if (at.program().level.domains > 0) --at.program().level.domains;
  at.program().level.heap_bytes -= at.domain->heap_bytes;  // other domains take it over
  libraries_.forget(life.process, life.domain);
  domains_.erase(life.key());
  recent_domain_ = {};
}

/// The time since the last change belongs to the innermost phase.
void RecordedRunSink::pass_phase(Program& program, Domain& domain, const DomainLife& life, std::uint64_t time_ns) {
  if (!domain.phases.empty()) {
    if (const std::size_t sum = use_of_phase(life.family, domain.phases.back()).sum)
      spread(program, sum, domain.phase_since_ns, time_ns);
  }
  domain.phase_since_ns = std::max(domain.phase_since_ns, time_ns);
}

void RecordedRunSink::on_phase_begin(const DomainLife& life, const PhaseBegin& phase) {
  const Place at = place(life);
  const PhaseUse& use = use_of_phase(life.family, phase.phase);
  if (!at || use.is_wait) return;
  Process& process = *at.process;
  pass_phase(at.program(), *at.domain, life, phase.time_ns);
  at.domain->phases.push_back(phase.phase);
  if (use.count) count(at.program(), *use.count, phase.time_ns);
  if (use.count == SliceSum::minor_collections) at.domain->collects_minor = true;
  if (use.call < explicit_sums)
    at.program().record.sums.at(clock_.at(phase.time_ns),
                                static_cast<std::size_t>(SliceSum::explicit_calls) + use.call) += 1;
  const StwPhases& stw = StwPhases::of(life.family);
  if (phase.phase == stw.leader) {
    process.leader_ns = phase.time_ns;
    process.last_arrival_ns = 0;
  } else if (phase.phase == stw.handler && process.leader_ns != 0) {
    process.last_arrival_ns = std::max(process.last_arrival_ns, phase.time_ns);
  }
}

void RecordedRunSink::leave_phase(const DomainLife& life, std::uint16_t phase, std::uint64_t time_ns, bool known) {
  const Place at = place(life);
  if (!at || use_of_phase(life.family, phase).is_wait) return;
  auto& phases = at.domain->phases;
  if (known) {
    pass_phase(at.program(), *at.domain, life, time_ns);
  } else {
    at.domain->phase_since_ns = time_ns;
  }
  const auto found = std::ranges::find(phases.rbegin(), phases.rend(), phase);
  if (found != phases.rend()) phases.erase(std::prev(found.base()));
  if (phase != StwPhases::of(life.family).leader) return;
  Process& process = *at.process;
  if (known && process.last_arrival_ns != 0)
    measure(at.program(), at.program().record.measured[static_cast<std::size_t>(Measured::stw_arrivals)],
            process.leader_ns, process.last_arrival_ns);
  process.leader_ns = process.last_arrival_ns = 0;
}

void RecordedRunSink::on_phase_end(const DomainLife& life, const PhaseEnd& phase) {
  leave_phase(life, phase.phase, phase.end_ns, true);
}

void RecordedRunSink::on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished /*reason*/) {
  leave_phase(life, phase.phase, phase.end_ns, false);
}

void RecordedRunSink::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  const Place at = place(life);
  if (!at) return;
  at.domain->collects_minor = false;
  at.domain->tid = run_.scheduler_seen ? threads_.writer_of(life.pid, life.domain).value_or(0) : 0;
  if (at.domain->tid != 0) at.domain->pause_begin = threads_.at(at.domain->tid, root.time_ns);
}

void RecordedRunSink::on_pause_end(const DomainLife& life, const PhaseEnd& root) {
  const Place at = place(life);
  if (!at) return;
  Program& program = at.program();
  const auto record = [&](Measured what) {
    measure(program, program.record.measured[static_cast<std::size_t>(what)], root.begin_ns, root.end_ns);
  };
  const PhaseUse& use = use_of_phase(life.family, root.phase);
  count(program, SliceSum::pauses, root.end_ns);
  spread(program, SliceSum::gc_ns, root.begin_ns, root.end_ns);
  record(Measured::pauses);
  if (use.call < explicit_sums) {
    record(Measured::explicit_pauses);
  } else if (at.domain->collects_minor) {
    record(Measured::minor_pauses);
  } else if (use.is_major) {
    record(Measured::major_pauses);
  }
  if (at.domain->tid == 0 || root.end_ns <= root.begin_ns) return;
  const TimeSplit time = ThreadTracker::between(at.domain->pause_begin, threads_.at(at.domain->tid, root.end_ns));
  spread(program, SliceSum::gc_cpu_ns, root.begin_ns, root.end_ns,
         static_cast<double>(time.on_cpu) / static_cast<double>(root.end_ns - root.begin_ns));
}

void RecordedRunSink::on_loss(const DomainLife& life, const Loss& loss) {
  const Place at = place(life);
  if (!at) return;
  Program& program = at.program();
  const std::uint64_t end_ns = std::min(loss.to_ns, last_ns_);
  program.record.lost.add(loss);
  count(program, SliceSum::lossy_ns, end_ns);
  spread(program, SliceSum::lossy_ns, std::max(loss.from_ns, at.process->begin_ns), end_ns);
  at.domain->spans.clear();
  libraries_.forget(life.process, life.domain);
}

void RecordedRunSink::on_thread_interval(const ThreadInterval& interval) {
  const bool waits = interval.state == ThreadState::runnable;
  if (!waits && interval.state != ThreadState::on_cpu) return;
  const auto image = images_.find(interval.pid);
  if (image == images_.end()) return;
  Program& program = *processes_.at(image->second).program;
  spread(program, waits ? SliceSum::runnable_ns : SliceSum::cpu_ns, interval.begin_ns, interval.end_ns);
  if (waits)
    measure(program, program.record.measured[static_cast<std::size_t>(Measured::cpu_waits)], interval.begin_ns,
            interval.end_ns);
}

void RecordedRunSink::sample(const Event& event, const Batch& batch) {
  const auto record = batch.payload_as<Sample>(event);
  const auto kind = static_cast<SampleKind>(event.id);
  if (!record || (kind != SampleKind::on_cpu && kind != SampleKind::allocation)) return;
  const auto process = processes_.find(record->process);
  if (process == processes_.end()) return;
  Program& program = *process->second.program;
  const std::size_t slice = clock_.at(event.time);
  if (sample_cells_ >= max_sample_cells) {
    program.record.lacks_room = true;
    return;
  }
  count(program, kind == SampleKind::on_cpu ? SliceSum::cpu_samples : SliceSum::allocation_samples, event.time);
  std::vector<SampleCount>& counts =
      samples_[{program.index, record->stack, kind, acts_for_domain(*record, kind) && is_in_phase(*record)}];
  if (!counts.empty() && counts.back().slice == slice) {
    ++counts.back().count;
  } else {
    counts.push_back({static_cast<std::uint16_t>(slice), 1});
    ++sample_cells_;
  }
}

bool RecordedRunSink::is_in_phase(const Sample& sample) const {
  const auto first = domains_.lower_bound(std::uint64_t{sample.process} << 32);
  const auto last = domains_.lower_bound(std::uint64_t{sample.process + 1} << 32);
  return std::ranges::any_of(first, last, [&](const auto& entry) {
    return Source::unpack(static_cast<std::uint32_t>(entry.first)).domain == sample.domain &&
           !entry.second.phases.empty();
  });
}

/// Of the functions that have a notable part of the samples. A stack counts for its innermost OCaml function: what the
/// runtime, C and the kernel do for it belongs to it.
void RecordedRunSink::name_samples(const Registry& registry) {
  constexpr std::uint64_t least_part = 500;
  CallTree tree(registry.stacks());
  const auto function_of = [&](StackIndex stack) {
    return tree.place_of(tree.add(stack, CallTree::Inner::ocaml_only)).function;
  };
  std::map<std::tuple<std::size_t, SampleKind, std::uint32_t>, std::uint64_t> totals;
  std::map<std::pair<std::size_t, SampleKind>, std::uint64_t> all;
  const auto add = [](SlicedSamples& samples, const std::vector<SampleCount>& counts) {
    for (const SampleCount& count : counts) {
      if (samples.size() <= count.slice) samples.resize(count.slice + std::size_t{1});
      samples[count.slice] += count.count;
    }
  };
  for (const auto& [key, counts] : samples_) {
    if (key.kind == SampleKind::on_cpu && (key.in_phase || is_below_gc_entry(key.stack, registry.stacks())))
      add(programs_[key.program]->record.gc, counts);
    std::uint64_t total = 0;
    for (const SampleCount& count : counts) total += count.count;
    totals[{key.program, key.kind, function_of(key.stack)}] += total;
    all[{key.program, key.kind}] += total;
  }
  for (const auto& [key, counts] : samples_) {
    const std::uint32_t function = function_of(key.stack);
    if (totals[{key.program, key.kind, function}] < all[{key.program, key.kind}] / least_part) continue;
    RecordedProgram& program = programs_[key.program]->record;
    const std::string name = fmt::format("{}", tree.functions()[function]);
    add((key.kind == SampleKind::on_cpu ? program.cpu : program.allocation)[name], counts);
  }
  samples_.clear();
}

}  // namespace rtev
