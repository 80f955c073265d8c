// SPDX-License-Identifier: MIT
#include "analysis/latency/latency_sink.hpp"

#include <algorithm>

#include "analysis/missing_events.hpp"

namespace rtev {

std::vector<std::string> phase_names() {
  std::vector<std::string> names;
  // The older family has no others.
  for (std::uint16_t id = 0; !phase_name(Family::since_5_3, id).empty(); ++id)
    names.emplace_back(phase_name(Family::since_5_3, id));
  return names;
}

Latency::Latency(LatencyOptions options, Output& output)
    : options_(std::move(options)), output_(output), finder_(*this, options_.rule) {
  if (options_.phase.empty()) return;
  for (const Family family : {Family::before_5_3, Family::since_5_3}) {
    phase_[static_cast<std::size_t>(family)] = find_phase(family, options_.phase);
  }
}

Latency::~Latency() = default;

void Latency::header(const RunHeader& header) {
  version_ = header.version;
  not_recorded_ = header.not_recorded;
  finder_.header(header);
  own_.header(header);
  run_ns_ = header.start_ns;
  run_realtime_ns_ = header.start_realtime_ns;
  start_ns_ = interval_begin_ns_ = last_ns_ = header.begin_ns();
}

void Latency::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  for (const Event& event : batch.events()) {
    pass(event.time, registry);
    finder_.add(event, batch, registry);
    time_.add(event, batch, registry);
    dropped_.add(event, batch);
    own_.add(event, batch);
    if (event.kind != EventKind::process) continue;
    note_process(event, batch, registry);
    read_programs_.add(event, batch, registry);
  }
  registry_ = nullptr;
}

void Latency::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  finder_.finish(last_ns_);
  dropped_.add(summary);
  own_.summary(summary);
  rings_missed_ = summary.rings_missed;
  lacks_ = lacks_of(with_scheduler_gaps(summary, scheduler_gaps()), registry);
  truncated_ = !summary.complete;
  not_recorded_.note(summary.events);
  words_before_ = words_overwritten_before(summary, registry);
  write(report(registry));
}

LatencyReport Latency::report(const Registry& registry) const {
  return report_of(LatencyReport::Span::run, start_ns_, last_ns_, registry);
}

/// Time goes on; intervals that are over are reported.
void Latency::pass(std::uint64_t time_ns, const Registry& registry) {
  if (start_ns_ == 0) start_ns_ = interval_begin_ns_ = last_ns_ = time_ns;
  last_ns_ = std::max(last_ns_, time_ns);
  if (options_.interval_ns == 0 || last_ns_ - interval_begin_ns_ < options_.interval_ns) return;
  end_interval(interval_begin_ns_ + options_.interval_ns, registry);
  // The further intervals are empty.
  const std::uint64_t past = last_ns_ - interval_begin_ns_;
  if (past >= options_.interval_ns) end_interval(last_ns_ - past % options_.interval_ns, registry);
}

void Latency::end_interval(std::uint64_t end_ns, const Registry& registry) {
  write(report_of(LatencyReport::Span::interval, interval_begin_ns_, end_ns, registry));
  write(report_of(LatencyReport::Span::so_far, start_ns_, end_ns, registry));
  for (auto& [index, process] : processes_) {
    for (auto& [number, domain] : process.domains) {
      bytes_ -= domain.interval.memory_bytes();
      domain.interval = {};
    }
  }
  others_.interval = {};
  interval_begin_ns_ = end_ns;
}

void Latency::write(const LatencyReport& report) {
  if (options_.format == LatencyOptions::Format::json) {
    output_.write(latency_json(report));
  } else if (report.span == LatencyReport::Span::interval) {
    constexpr std::size_t lines_per_titles = 20;
    const std::string text = latency_interval_text(report, interval_lines_ == 0);
    interval_lines_ += static_cast<std::size_t>(std::ranges::count(text, '\n'));
    if (interval_lines_ > lines_per_titles) interval_lines_ = 0;
    output_.write(text);
  } else if (report.span == LatencyReport::Span::run) {
    output_.write((options_.interval_ns != 0 ? "\n" : "") + latency_text(report, options_.full));
  }
}

void Latency::on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool certain) {
  utilization_.begin_domain(domain, time_ns, certain);
  auto process = processes_.find(domain.process);
  const bool known = process != processes_.end() && process->second.domains.contains(domain.domain);
  if (!known && domains_ >= options_.max_domains && !make_room()) {
    ++others_.incarnations;
    return;
  }
  if (process == processes_.end()) {
    process = processes_.try_emplace(domain.process).first;
    process->second.pid = domain.pid;
    if (registry_) describe(process->second, registry_->process(domain.process));
  }
  if (!known) ++domains_;
  ++process->second.domains[domain.domain].incarnations;
}

void Latency::on_domain_end(const DomainLife& domain, std::uint64_t time_ns) {
  utilization_.end_domain(domain, time_ns);
}

std::uint64_t Latency::time_of(const ProcessEntry& entry) {
  std::uint64_t ns = 0;
  for (const auto& [number, domain] : entry.domains) ns += domain.total.wall.total();
  return ns;
}

/// Puts the ended process with the least time to the others. False if none has ended.
bool Latency::make_room() {
  auto least = processes_.end();
  while (least == processes_.end() && !ended_.empty()) {
    const auto [ns, index] = *ended_.begin();
    ended_.erase(ended_.begin());
    const auto process = processes_.find(index);
    if (process == processes_.end() || !process->second.ended) continue;
    // Late events and merged domains change it.
    if (const std::uint64_t now = time_of(process->second); now > ns) {
      ended_.emplace(now, index);
    } else {
      least = process;
    }
  }
  if (least == processes_.end()) return false;
  for (const auto& [number, domain] : least->second.domains) merge_into_others(domain);
  processes_.erase(least);
  ++merged_processes_;
  return true;
}

void Latency::merge_into_others(const DomainEntry& domain) {
  others_.incarnations += domain.incarnations;
  others_.total.merge(domain.total);
  others_.interval.merge(domain.interval);
  bytes_ -= domain.memory_bytes();
  --domains_;
}

/// Puts the domains with the least time to the others until a part of the memory is free again: each time costs as much
/// as sorting all domains.
void Latency::merge_domains() {
  struct Place {
    std::uint64_t ns;
    ProcessIndex process;
    std::uint16_t domain;
  };
  std::vector<Place> places;
  for (const auto& [index, process] : processes_) {
    for (const auto& [number, domain] : process.domains) places.push_back({domain.total.wall.total(), index, number});
  }
  std::ranges::sort(places, {}, &Place::ns);
  for (const Place& place : places) {
    if (bytes_ <= options_.max_bytes / 4 * 3) return;
    const auto process = processes_.find(place.process);
    const auto domain = process->second.domains.find(place.domain);
    merge_into_others(domain->second);
    process->second.domains.erase(domain);
    if (!process->second.domains.empty()) continue;
    processes_.erase(process);
    ++merged_processes_;
  }
}

void Latency::note_process(const Event& event, const Batch& batch, const Registry& registry) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record || event.id != static_cast<std::uint16_t>(ProcessAction::exit)) return;
  const auto process = processes_.find(record->process);
  if (process == processes_.end()) return;
  process->second.ended = true;
  ended_.emplace(time_of(process->second), record->process);
  describe(process->second, registry.process(record->process));
}

/// The registry forgets processes that ended long ago.
void Latency::describe(ProcessEntry& entry, const ProcessInfo& info) {
  if (info.pid == 0) return;
  entry.comm = info.name;
  entry.exe = info.exe;
}

void Latency::on_pause_begin(const DomainLife& domain, const PhaseBegin& root) {
  if (options_.phase.empty()) meters_.begin(domain, root.time_ns);
}

void Latency::on_pause_end(const DomainLife& domain, const PhaseEnd& root) {
  if (!options_.phase.empty()) return;
  utilization_.add_pause(domain, root.begin_ns, root.end_ns);
  record(domain, root);
}

void Latency::on_pause_dropped(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) {
  if (!options_.phase.empty()) return;
  utilization_.lose(domain, root.begin_ns);
  drop(domain, root, reason);
}

void Latency::on_phase_begin(const DomainLife& domain, const PhaseBegin& phase) {
  if (is_wanted(domain, phase.phase)) meters_.begin(domain, phase.time_ns);
}

void Latency::on_phase_end(const DomainLife& domain, const PhaseEnd& phase) {
  if (is_wanted(domain, phase.phase)) record(domain, phase);
}

void Latency::on_phase_dropped(const DomainLife& domain, const PhaseEnd& phase, Unfinished reason) {
  if (is_wanted(domain, phase.phase)) drop(domain, phase, reason);
}

void Latency::on_loss(const DomainLife& domain, const Loss& loss) {
  utilization_.lose(domain, loss.from_ns);
  update(domain, [&](LatencyFigures& figures) {
    figures.lost_words += loss.words;
    figures.unprobed += loss.words == 0;
  });
}

bool Latency::is_wanted(const DomainLife& domain, std::uint16_t phase) const {
  return phase_[static_cast<std::size_t>(domain.family)] == Phase{phase};
}

void Latency::record(const DomainLife& domain, const PhaseEnd& span) {
  const auto split = meters_.end(domain, span);
  if (!split) return;
  const std::uint64_t wall_ns = span.end_ns - span.begin_ns;
  update(domain, [&](LatencyFigures& figures) {
    if (wall_ns < options_.min_ns) {
      ++figures.below_min;
    } else {
      figures.record(span.begin_ns, wall_ns, *split);
    }
  });
}

void Latency::drop(const DomainLife& domain, const PhaseEnd& span, Unfinished reason) {
  if (!meters_.end(domain, span)) return;
  update(domain, [&](LatencyFigures& figures) { ++figures.unfinished[static_cast<std::size_t>(reason)]; });
}

template <typename Change>
void Latency::update(const DomainLife& domain, const Change& change) {
  DomainEntry* entry = &others_;
  if (const auto process = processes_.find(domain.process); process != processes_.end()) {
    const auto found = process->second.domains.find(domain.domain);
    if (found != process->second.domains.end()) entry = &found->second;
  }
  const std::size_t before = entry->memory_bytes();
  change(entry->total);
  if (options_.interval_ns != 0) change(entry->interval);
  if (entry == &others_) return;
  bytes_ += entry->memory_bytes() - before;
  if (bytes_ > options_.max_bytes) merge_domains();
}

LatencyReport::Process Latency::report_of(ProcessIndex index, const ProcessEntry& entry, Part part,
                                          const Registry& registry) const {
  LatencyReport::Process process{
      .index = index, .pid = entry.pid, .comm = entry.comm, .exe = entry.exe, .ended = entry.ended};
  if (const ProcessInfo& info = registry.process(index); info.pid != 0) {
    process.comm = info.name;
    process.exe = info.exe;
    process.lacks_rings = info.missed.sum() > 0 || info.words.unread > 0;
  }
  for (const auto& [number, domain] : entry.domains) {
    if ((domain.*part).empty()) continue;
    process.figures.merge(domain.*part);
    process.domains.push_back({.domain = number, .incarnations = domain.incarnations, .figures = domain.*part});
  }
  return process;
}

LatencyReport Latency::report_of(LatencyReport::Span span, std::uint64_t from_ns, std::uint64_t to_ns,
                                 const Registry& registry) const {
  const Part part = span == LatencyReport::Span::interval ? &DomainEntry::interval : &DomainEntry::total;
  LatencyReport report{.span = span,
                       .rule = options_.rule,
                       .phase = options_.phase,
                       .min_ns = options_.min_ns,
                       .version = version_,
                       .run_ns = run_ns_ != 0 ? run_ns_ : start_ns_,
                       .run_realtime_ns = run_realtime_ns_,
                       .start_ns = std::max(from_ns, start_ns_),
                       .end_ns = std::max(to_ns, start_ns_),
                       .truncated = truncated_,
                       .not_recorded = not_recorded_,
                       .scheduler_seen = time_.switches_seen(),
                       .by_process = options_.by_process,
                       .scheduler_dropped = dropped_.count(),
                       .rings_missed = rings_missed_,
                       .lacks = lacks_,
                       .words_before = words_before_,
                       .own = own_.figures(),
                       .ignored_events = finder_.ignored(),
                       .process_count = processes_.size() + merged_processes_,
                       .other_domains = others_.incarnations,
                       .others = others_.*part,
                       .read_programs = read_programs_.programs(registry)};
  // Without some phases there were other pauses.
  if (span == LatencyReport::Span::run && options_.phase.empty() && !not_recorded_.lacks_pauses())
    report.utilization = utilization_.windows();
  report.all.merge(report.others);
  for (const auto& [index, entry] : processes_) {
    LatencyReport::Process process = report_of(index, entry, part, registry);
    if (process.domains.empty()) {
      // It counts by the program that it ran later.
      if (registry.process(index).replaced) --report.process_count;
      continue;
    }
    report.all.merge(process.figures);
    report.processes.push_back(std::move(process));
  }
  std::ranges::sort(report.processes, [](const LatencyReport::Process& a, const LatencyReport::Process& b) {
    return std::pair{b.figures.wall.total(), a.index} < std::pair{a.figures.wall.total(), b.index};
  });
  return report;
}

}  // namespace rtev
