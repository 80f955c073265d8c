// SPDX-License-Identifier: MIT
#include <algorithm>
#include <ranges>
#include <tuple>

#include "analysis/stats/stats_state.hpp"
#include "base/saturating_sum.hpp"
#include "stream/program_key.hpp"

namespace rtev {

void MajorCycles::add(std::uint64_t time_ns, std::uint64_t heap_words) {
  if (count++ > 0) longest_gap_ns = std::max(longest_gap_ns, distance(last_ns, time_ns));
  last_ns = time_ns;
  heap_words_at_last = heap_words;
}

bool MajorCycles::have_stopped(std::uint64_t now_ns, std::uint64_t heap_words) const {
  constexpr std::uint64_t least_ns = 1'000'000'000, gaps = 8, least_growth_words = 1'000'000;
  const std::uint64_t since_ns = distance(last_ns, now_ns);
  return count >= least_count && since_ns >= least_ns && since_ns / gaps >= longest_gap_ns && heap_words_at_last > 0 &&
         heap_words / 2 >= heap_words_at_last && heap_words - heap_words_at_last >= least_growth_words;
}

void ProgramStats::add(const ProcessStats& process) {
  if (processes++ == 0) {
    comm = process.comm;
    exe = process.exe;
  }
  domains += process.domain_count();
  watched += process.heap_words.count() > 0 && !process.heap_words.is_short() ? 1 : 0;
  rising += process.heap_words.rises_all_the_time() ? 1 : 0;
  if (process.heap_words.count() > 0) max_heap_words = std::max(max_heap_words.value_or(0), process.heap_words.last());
  if (process.max_rss_bytes) max_rss_bytes = std::max(max_rss_bytes.value_or(0), *process.max_rss_bytes);
  figures += process.figures;
}

std::unordered_set<std::string> StatsReport::programs_of_one_row() const {
  std::unordered_set<std::string> keys;
  for (const ProgramStats& program : programs)
    if (has_one_row(program)) keys.insert(program.key);
  return keys;
}

/// What --events left out.
void Stats::set_left_out(Missing& missing) const {
  missing.phases = not_recorded_.has_phases();
  missing.counters = not_recorded_.has_counters();
  missing.user_events = not_recorded_.has(EventKind::user_unit);
  missing.process_times = not_recorded_.has(EventKind::process);
  missing.domain_times = missing.process_times || not_recorded_.has(EventKind::lifecycle);
}

DomainStats Stats::stats_of(const Process& process, const Incarnation& domain,
                            const std::vector<ThreadInterval>& running) const {
  const std::uint64_t end = domain.end_or(process.end_or(now_ns_));
  Tally tally = domain.tally;
  tally.wall_ns = distance(domain.begin_ns, end);
  if (domain.pause_since_ns && !domain.ended && not_recorded_.has(EventKind::process)) {
    ++tally.unfinished;  // it may have ended long ago, with its process
  } else if (domain.pause_since_ns) {
    tally.gc_ns = saturating_sum(tally.gc_ns, distance(*domain.pause_since_ns, end));
  }
  for (const ThreadInterval& interval : running) {
    if (!domain.ended && interval.pid == process.stats.pid && domain_of(interval) == domain.domain)
      tally.cpu_ns += overlap(interval, domain.begin_ns, end);
  }
  DomainStats stats{.domain = domain.domain,
                    .incarnation = domain.number,
                    .ended = domain.ended,
                    .begin_ns = domain.begin_ns,
                    .figures = figures_of(tally, process.stats.family, tally.cpu_ns > 0)};
  set_left_out(stats.figures.missing);
  stats.figures.missing.process_times = stats.figures.missing.domain_times;  // its own
  stats.figures.missing.paused = process.paused;
  stats.figures.missing.before = process.lacks_past;
  stats.figures.missing.unread = process.lacks_rings;
  return stats;
}

ProcessStats Stats::stats_of(const Process& process, const std::vector<ThreadInterval>& running) const {
  ProcessStats stats = process.stats;
  const Family family = stats.family;
  stats.ended = process.ended;
  stats.end_ns = process.end_or(now_ns_);
  for (const auto& domain : process.retired) stats.domains.push_back(stats_of(process, *domain, running));
  for (const Process::Domain& domain : process.domains) {
    if (domain.current) stats.domains.push_back(stats_of(process, *domain.current, running));
  }
  std::ranges::sort(stats.domains, {},
                    [](const DomainStats& domain) { return std::pair{domain.domain, domain.incarnation}; });
  stats.other_domain_count = process.other_count;
  Tally others = process.others_until(process.end_or(now_ns_));
  for (const ThreadInterval& interval : running) {
    if (interval.pid == stats.pid && stats.cpu_since_ns && process.is_merged(domain_of(interval)))
      others.cpu_ns += overlap(interval, *stats.cpu_since_ns, now_ns_);
  }
  stats.other_domains = figures_of(others, family, others.cpu_ns > 0);
  stats.other_domains.missing.paused = process.paused && process.other_count > 0;
  stats.other_domains.missing.before = process.lacks_past && process.other_count > 0;
  stats.other_domains.missing.unread = process.lacks_rings && process.other_count > 0;
  if (process.other_count > 0) set_left_out(stats.other_domains.missing);
  stats.other_domains.heap = {};

  StatsFigures& figures = stats.figures;
  figures = stats.other_domains;
  for (const DomainStats& domain : stats.domains) figures += domain.figures;
  // Of unknown times rates are those of the run.
  figures.wall_ns =
      distance(not_recorded_.has(EventKind::process) ? start_ns_ : stats.begin_ns, process.end_or(now_ns_));
  figures.missing.paused = process.paused;
  figures.missing.before = process.lacks_past;
  figures.missing.unread = process.lacks_rings;
  figures.missing.merged = process.lacks_collections;
  if (stats.domain_count() > 0) stats.events = EventsRead::yes;
  figures.missing.on = stats.events == EventsRead::yes;
  figures.missing.off = stats.other_domains.missing.off = !figures.missing.on;
  set_left_out(figures.missing);
  set_collections(figures, process.greatest, family);
  figures.sampled_ns = process.sampled_ns;
  figures.gc_sampled_ns = process.gc_sampled_ns;
  figures.cpu_ns.reset();
  if (scheduler_seen_ && stats.cpu_since_ns) {
    figures.cpu_ns = process.cpu_ns;
    for (const ThreadInterval& interval : running) {
      if (!process.ended && stats.cpu_since_ns && interval.pid == stats.pid)
        *figures.cpu_ns += overlap(interval, *stats.cpu_since_ns, now_ns_);
    }
  }
  // Events of the process are missing that say which switches are its own.
  if (figures.cpu_ns == 0 && figures.gc_cpu_ns > 0) figures.cpu_ns.reset();
  for (std::size_t i = 0; i < figures.heap.size() && !process.lacks_heap; ++i) {
    const auto id = heap_counter_id(family, i);
    const auto has_it = [&](const DomainStats& domain) { return domain.figures.heap[i].has_value(); };
    if (id && (std::ranges::any_of(stats.domains, has_it) || process.others.counters[*id].count > 0))
      figures.heap[i] = process.gauges[*id];
  }
  std::ranges::sort(stats.user_events, [](const UserEventStats& a, const UserEventStats& b) {
    return std::tuple{b.count, a.id} < std::tuple{a.count, b.id};
  });
  return stats;
}

StatsReport Stats::report(const Registry& registry) {
  count_samples(registry, false);
  for (Process& process : processes_ | std::views::values) {
    const ProcessInfo& info = registry.process(process.index);
    if (info.pid != process.stats.pid || info.start_ticks != process.stats.start_ticks) continue;
    if (!process.ended)
      process.learn(info);
    else if (process.stats.events == EventsRead::off)
      process.stats.events = events_read(info);  // that a ring was missed is known later, in a recording at its end
  }
  StatsReport report{.version = version_,
                     .run_ns = run_ns_,
                     .run_realtime_ns = run_realtime_ns_,
                     .start_ns = start_ns_,
                     .end_ns = std::max(now_ns_, start_ns_),
                     .truncated = truncated_,
                     .not_recorded = not_recorded_,
                     .other_process_count = other_process_count_,
                     .other_did_nothing = other_did_nothing_,
                     .other_processes = other_processes_,
                     .by_process = options_.by_process,
                     .total = other_processes_,
                     .process_count = processes_.size() + other_process_count_,
                     .replaced = other_replaced_,
                     .read_programs = other_read_programs_,
                     .scheduler_seen = scheduler_seen_,
                     .switches_dropped = switches_dropped_,
                     .utilization = options_.utilization && !not_recorded_.has_phases()
                                        ? utilization_.windows_at(now_ns_)
                                        : std::vector<WindowUtilization>(),
                     .allocators = allocators_.greatest(registry),
                     .rings_missed = rings_missed_,
                     .lacks = lacks_,
                     .ignored_events = pauses_.ignored()};
  set_left_out(report.total.missing);
  set_left_out(report.other_processes.missing);
  // Which processes lack them is not always known.
  report.total.missing.unread = lacks_events(lacks_);
  report.other_processes.missing.unread = lacks_events(lacks_) && other_process_count_ > 0;
  const std::vector<ThreadInterval> intervals = running();
  std::unordered_map<std::string, ProgramStats> programs = other_programs_;
  report.processes.reserve(processes_.size());
  for (const Process& process : processes_ | std::views::values) {
    ProcessStats stats = stats_of(process, intervals);
    set_left_out(stats.figures.missing);  // also of one without a domain
    report.replaced += registry.process(process.index).replaced ? 1 : 0;
    report.total += stats.figures;
    const bool has_just_begun = process.shown_from_ns > start_ns_ && stats.begin_ns == process.shown_from_ns &&
                                distance(stats.begin_ns, now_ns_) < max_start_ns;
    report.read_programs.add(stats.events, stats.ended || has_just_begun);
    if (!stats.did_nothing()) {
      std::string key = program_key(stats.exe, stats.comm);
      ProgramStats& program = programs[key];
      program.key = std::move(key);
      program.add(stats);
    }
    report.processes.push_back(std::move(stats));
  }
  report.total.wall_ns = distance(report.start_ns, report.end_ns);
  report.total.missing.process_times = false;  // that of the run
  report.total.missing.ignored = report.ignored_events > 0;
  if (scheduler_seen_ && report.processes.empty() && !report.total.cpu_ns) report.total.cpu_ns = 0;
  std::ranges::sort(report.processes, [](const ProcessStats& a, const ProcessStats& b) {
    return std::tuple{b.figures.gc_ns, b.figures.events, a.pid, a.begin_ns} <
           std::tuple{a.figures.gc_ns, a.figures.events, b.pid, b.begin_ns};
  });
  for (ProgramStats& program : programs | std::views::values) report.programs.push_back(std::move(program));
  std::ranges::sort(report.programs, [](const ProgramStats& a, const ProgramStats& b) {
    return std::tie(b.figures.gc_ns, b.figures.events, a.key) < std::tie(a.figures.gc_ns, a.figures.events, b.key);
  });
  return report;
}

}  // namespace rtev
