// SPDX-License-Identifier: MIT
#include "top/interval_sink.hpp"

#include <algorithm>
#include <ranges>
#include <span>
#include <utility>

#include "analysis/report_text.hpp"
#include "stream/program_key.hpp"

namespace rtev::top {
namespace {

constexpr std::size_t analyzer_bytes = std::size_t{4} << 20;
constexpr std::uint64_t word_bytes = 8;

/// Of a gap in the stream longer than that there are no empty intervals: times in a recording can be anything.
constexpr std::uint64_t max_empty_intervals = 3600;

std::uint64_t rise(std::uint64_t now, std::uint64_t before) {
  return now - std::min(now, before);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::uint64_t bytes_of_words(std::uint64_t words) {
  return words > UINT64_MAX / word_bytes ? UINT64_MAX : words * word_bytes;
}

/// "12 × domain 1 late to stop (1.2ms to 3.4ms)".
std::string cause_line(const CauseGroup& group, SwitchesSeen seen) {
  TextBuffer line;
  print(line, "{} × ", Grouped{group.count});
  append(line, CauseName{.group = group, .seen = seen, .with_time = true});
  return std::string(line.text());
}

}  // namespace

IntervalSink::IntervalSink(const IntervalOptions& options, Done done)
    : options_(options),
      done_(std::move(done)),
      stats_({.utilization = false, .cpu_time = false}),
      analyzer_(*this, analyzer_bytes) {}

void IntervalSink::header(const RunHeader& header) {
  header_ = header;
  stats_.header(header);
  tasks_.header(header);
  analyzer_.header(header);
  begin_ns_ = now_ns_ = header.begin_ns();
  next_ns_ = begin_ns_ + options_.interval_ns;
}

void IntervalSink::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  std::span<const Event> rest = batch.events();
  while (!rest.empty()) {
    const auto later = std::ranges::find_if(rest, [&](const Event& event) { return event.time >= next_ns_; });
    const auto count = static_cast<std::size_t>(later - rest.begin());
    if (count > 0) take(Batch(rest.first(count), batch.payloads()), registry);
    rest = rest.subspan(count);
    if (!rest.empty()) end_intervals(rest.front().time, registry);
  }
}

void IntervalSink::advance(std::uint64_t time_ns, const Registry& registry) {
  registry_ = &registry;
  end_intervals(time_ns, registry);
}

void IntervalSink::summary(const RunSummary& summary, const Registry& registry) {
  const std::uint64_t end_ns = std::max(summary.end_ns, now_ns_);
  end_intervals(end_ns, registry);
  is_truncated_ = !summary.complete;
  if (end_ns > begin_ns_ && now_ns_ > begin_ns_) end_interval(end_ns, registry);
  registry_ = nullptr;
}

void IntervalSink::take(const Batch& batch, const Registry& registry) {
  for (const Event& event : batch.events()) {
    analyzer_.add(event, batch, registry);
    if (is_sched_loss(event)) {
      if (const auto loss = batch.payload_as<Loss>(event)) dropped_ += loss->words;
    }
  }
  now_ns_ = std::max(now_ns_, batch.events().back().time);
  stats_.consume(batch, registry);
  tasks_.consume(batch, registry);
}

/// Those that end until then.
void IntervalSink::end_intervals(std::uint64_t time_ns, const Registry& registry) {
  if (time_ns >= next_ns_ && (time_ns - next_ns_) / options_.interval_ns > max_empty_intervals) {
    end_interval(next_ns_, registry);
    next_ns_ = time_ns - (time_ns - next_ns_) % options_.interval_ns;
  }
  for (; time_ns >= next_ns_; next_ns_ += options_.interval_ns) end_interval(next_ns_, registry);
}

void IntervalSink::end_interval(std::uint64_t time_ns, const Registry& registry) {
  Interval interval{.time_ns = time_ns,
                    .elapsed_ns = rise(time_ns, header_.start_ns),
                    .length_ns = rise(time_ns, begin_ns_),
                    .scheduler_seen = analyzer_.scheduler_seen(),
                    .dropped = std::exchange(dropped_, 0)};
  if (header_.start_realtime_ns != 0)
    interval.realtime_ns = header_.start_realtime_ns + (time_ns - header_.start_ns);  // modulo 2^64
  now_ns_ = std::max(now_ns_, time_ns);
  stats_.go_on_until(time_ns);

  // What goes on counts as far as it got.
  analyzer_.threads().each_current(time_ns, [this](const ThreadInterval& present) { on_thread_interval(present); });
  // At the end of a part of a recording the registry may know of ends that come later: those in the stream count.
  std::unordered_map<std::int32_t, ProcessIndex> newest;
  for (const auto& [index, info] : registry.indexed_processes()) newest[info.pid] = std::max(newest[info.pid], index);
  const StatsReport report = stats_.report(registry);
  interval.is_partial = interval.length_ns < options_.interval_ns;
  interval.is_truncated = is_truncated_;
  std::unordered_map<std::int32_t, const ProcessStats*> shown;
  for (const ProcessStats& process : report.processes) {
    const auto index = newest.find(process.pid);
    if (index == newest.end() || registry.process(index->second).start_ticks != process.start_ticks) continue;
    // Those that ended are shown once. After an exec the program before has the same pid.
    const bool was_shown = process.begin_ns < begin_ns_ && !before_.contains(index->second);
    if (process.ended && (was_shown || process.did_nothing())) continue;
    const ProcessStats*& one = shown[process.pid];
    if (one == nullptr || one->ended) one = &process;
  }
  std::unordered_map<std::uint32_t, Histogram> lengths;
  for (const auto& [pid, process] : shown) {
    interval.processes.push_back(figures_of(newest[pid], *process, time_ns, lengths[program_of(*process)]));
    if (options_.details) interval.details.push_back(details_of(newest[pid], *process));
  }
  std::ranges::sort(interval.processes, {}, &ProcessFigures::index);
  add_programs(interval, lengths);
  for (const ProcessFigures& process : interval.processes) {
    interval.events += process.events;
    interval.lost_words += process.lost_words;
  }
  if (worst_) interval.worst = sentence_about(*worst_, true);
  if (longest_open_ns_ > (worst_ ? worst_->duration_ns() : 0)) interval.worst = std::move(longest_open_);
  worst_.reset();
  longest_open_ns_ = 0;
  longest_open_.clear();
  thread_times_.clear();
  recent_times_.clear();
  begin_ns_ = time_ns;

  // Of processes that are gone nothing is kept.
  const auto is_gone = [&](ProcessIndex index) {
    const ProcessFigures* const process = interval.find(index);
    return process == nullptr || process->ended;
  };
  std::erase_if(before_, [&](const auto& entry) { return is_gone(entry.first); });
  std::erase_if(activities_, [&](const auto& entry) {
    if (!is_gone(entry.first)) return false;
    with_causes_ -= entry.second.causes != nullptr;
    return true;
  });
  done_(std::move(interval));
}

std::uint32_t IntervalSink::program_of(const ProcessStats& process) {
  constexpr std::size_t max_programs = 4096;
  // Numbers are not used again: rows of old intervals have them.
  if (programs_.size() > max_programs) programs_.clear();
  std::uint32_t& number = programs_[program_key(process.exe, process.comm)];
  if (number == 0) number = ++last_program_;
  return number;
}

void IntervalSink::add_programs(Interval& interval, const std::unordered_map<std::uint32_t, Histogram>& lengths) {
  std::map<std::uint32_t, ProcessFigures> programs;
  for (const ProcessFigures& process : interval.processes) {
    const auto [program, is_first] =
        programs.try_emplace(process.program, ProcessFigures{.program = process.program,
                                                             .processes = 0,
                                                             .comm = process.comm,
                                                             .events_read = process.events_read,
                                                             .version = process.version,
                                                             .ended = true,
                                                             .interval_ns = process.interval_ns});
    program->second.add(process);
  }
  for (auto& [number, program] : programs) {
    if (program.processes <= max_single_processes) continue;
    program.set_shares();
    program.p50_ns = lengths.at(number).known_percentile(50);
    program.p99_ns = lengths.at(number).known_percentile(99);
    interval.programs.push_back(std::move(program));
  }
}

ProcessFigures IntervalSink::figures_of(ProcessIndex index, const ProcessStats& process, std::uint64_t time_ns,
                                        Histogram& lengths) {
  Activity& activity = activities_[index];
  Before& before = before_[index];
  const StatsFigures &now = process.figures, &then = before.figures;
  const std::uint64_t interval_ns = rise(time_ns, begin_ns_);
  const bool has_events = process.events == EventsRead::yes;
  ProcessFigures figures{
      .index = index,
      .program = program_of(process),
      .pid = process.pid,
      .comm = process.comm,
      .events_read = process.events,
      .is_starting = process.events == EventsRead::off && rise(time_ns, process.begin_ns) < max_start_ns,
      .knows_phases = has_events && !header_.not_recorded.has_phases(),
      .knows_counters = has_events && !header_.not_recorded.has_counters() && now.known_minor_words(),
      .knows_losses = has_events && !is_truncated_ && !process.figures.missing.unprobed,
      .version = process.version,
      .ended = process.ended,
      .interval_ns = interval_ns};
  figures.domains = static_cast<std::size_t>(std::ranges::count(process.domains, false, &DomainStats::ended));
  const auto times = thread_times_.find(process.pid);
  const ThreadTime time = times != thread_times_.end() ? times->second : ThreadTime{};
  if (analyzer_.scheduler_seen()) {
    figures.cpu_share = share_of(time.cpu_ns, interval_ns);
    if (!header_.not_recorded.has(EventKind::wakeup)) figures.wait_share = share_of(time.runnable_ns, interval_ns);
  }
  figures.gc_ns = rise(now.gc_ns, then.gc_ns);
  figures.domain_ns = rise(now.domain_ns, then.domain_ns);

  figures.pauses = activity.pauses.count();
  figures.p50_ns = activity.pauses.known_percentile(50);
  figures.p99_ns = activity.pauses.known_percentile(99);
  figures.worst_ns = activity.worst_ns;
  for (const auto& [number, domain] : activity.domains) {
    const std::uint64_t ns = domain.pause_since_ns ? rise(time_ns, *domain.pause_since_ns) : 0;
    figures.worst_ns = std::max(figures.worst_ns, ns);
    if (ns <= longest_open_ns_) continue;
    longest_open_ns_ = ns;
    longest_open_ = fmt::format("{} so far in {}, domain {}: it goes on", Duration{ns},
                                ProcessName{process.comm, process.pid}, number);
  }
  figures.sections = activity.sections;
  figures.arrival_ns = activity.arrival_ns;
  lengths.merge(activity.pauses);
  activity.pauses.clear();
  activity.worst_ns = activity.sections = activity.arrival_ns = 0;

  figures.minor_collections = rise(now.minor_collections, then.minor_collections);
  figures.major_cycles = rise(now.major_cycles, then.major_cycles);
  const std::uint64_t minor = rise(now.minor_words, then.minor_words);
  const std::uint64_t promoted = rise(now.promoted_words, then.promoted_words);
  const std::uint64_t major = rise(now.major_words.value_or(0), then.major_words.value_or(0));
  figures.allocated_bytes = bytes_of_words(minor + (major - std::min(major, promoted)));
  figures.minor_words = minor;
  figures.promoted_words = promoted;
  figures.set_shares();
  if (process.heap_words.count() > 0) {
    const std::uint64_t bytes = bytes_of_words(process.heap_words.last());
    figures.heap_bytes = bytes;
    if (process.live_words.count() > 0 && bytes > 0)
      // The heap may have become smaller since.
      figures.live_share = std::min(share_of(bytes_of_words(process.live_words.last()), bytes), 1.0);
    while (!before.heaps.empty() && before.heaps.front().time_ns + growth_window_ns < time_ns) before.heaps.pop_front();
    if (!before.heaps.empty()) {
      const Heap& oldest = before.heaps.front();
      figures.growth = (static_cast<double>(bytes) - static_cast<double>(oldest.bytes)) * 1e9 /
                       static_cast<double>(std::max<std::uint64_t>(rise(time_ns, oldest.time_ns), 1));
    }
    before.heaps.push_back({.time_ns = time_ns, .bytes = bytes});
  }
  figures.events = rise(now.events, then.events);
  figures.lost_words = rise(now.lost_words, then.lost_words);
  before.figures = now;
  return figures;
}

ProcessDetails IntervalSink::details_of(ProcessIndex index) {
  if (registry_ == nullptr || !before_.contains(index)) return {};
  const ProcessInfo& info = registry_->process(index);
  const StatsReport report = stats_.report(*registry_);
  for (const ProcessStats& process : report.processes)
    if (!process.ended && process.pid == info.pid && process.start_ticks == info.start_ticks)
      return details_of(index, process);
  return {};
}

ProcessDetails IntervalSink::details_of(ProcessIndex index, const ProcessStats& process) {
  ProcessDetails details{.index = index};
  const Activity& activity = activities_[index];
  for (const DomainStats& domain : process.domains) {
    if (domain.ended || details.domains.size() >= max_domains) continue;
    const auto found = activity.domains.find(domain.domain);
    const Domain* const known = found != activity.domains.end() ? &found->second : nullptr;
    details.domains.push_back({.name = fmt::format("{}", DomainName{domain.domain, domain.incarnation}),
                               .state = state_of(process.pid, domain.domain, known),
                               .gc_share = domain.figures.gc_share(),
                               .pauses = known != nullptr ? known->pauses : 0,
                               .worst_ns = known != nullptr ? known->worst_ns : 0});
  }
  if (activity.causes != nullptr) {
    const LongPauses found = activity.causes->longest(0);
    const PauseDetails* worst = nullptr;
    for (const CauseGroup& group : found.groups) {
      if (details.causes.size() < max_causes) details.causes.push_back(cause_line(group, switches_seen()));
      if (worst == nullptr || group.worst->duration_ns() > worst->duration_ns()) worst = group.worst;
    }
    if (worst != nullptr) details.worst = sentence_about(*worst, false);
  }
  details.tasks = task_lines(index);
  for (const UserEventStats& event : process.user_events) {
    if (event.durations.count() == 0) continue;
    details.spans.push_back({.name = escaped(event.name),
                             .count = event.durations.count(),
                             .total_ns = event.durations.total(),
                             .max_ns = event.durations.max(),
                             .p99_ns = event.durations.known_percentile(99)});
  }
  std::ranges::sort(details.spans, std::greater{}, &SpanDetails::total_ns);
  if (details.spans.size() > max_spans) {
    details.other_spans = details.spans.size() - max_spans;
    details.spans.resize(max_spans);
  }
  return details;
}

/// "300ms fiber 3 "worker" on domain 0; kept waiting: fiber 2 "ticker" up to 300ms (sleep)".
std::vector<std::string> IntervalSink::task_lines(ProcessIndex index) const {
  std::vector<std::string> lines;
  const TaskProgram* const program = tasks_.program(index);
  if (program == nullptr) return lines;
  for (const TaskRun& run : program->longest | std::views::take(max_runs)) {
    TextBuffer line;
    print(line, "{} {} on domain {}", Duration{run.length_ns()}, TaskName{run.task}, run.domain);
    std::string_view separator = "; kept waiting: ";
    for (const TaskWait& wait : run.waits | std::views::take(max_waits)) {
      print(line, "{}{} {}{}", separator, TaskName{wait.task}, wait.certain ? "" : "up to ", Duration{wait.ns});
      if (!wait.operation.empty()) print(line, " ({})", Escaped{wait.operation});
      separator = ", ";
    }
    lines.emplace_back(line.text());
  }
  return lines;
}

/// What a domain does now.
std::string IntervalSink::state_of(std::int32_t pid, std::uint16_t domain, const Domain* known) const {
  TextBuffer text;
  const bool is_in_pause = known != nullptr && known->pause_since_ns;
  if (is_in_pause) print(text, "in a pause for {}", Duration{rise(now_ns_, *known->pause_since_ns)});
  const ThreadTracker& threads = analyzer_.threads();
  const auto tid = is_in_pause ? threads.writer_of(pid, domain) : threads.mutator_of(pid, domain);
  const auto now = tid ? threads.current(*tid, now_ns_) : std::nullopt;
  const auto add = [&](std::string_view state) { text.add(text.size() > 0 ? ", " : "", state); };
  if (!now || now->state == ThreadState::unknown) {
    add("not known whether it runs");
  } else if (now->state == ThreadState::on_cpu) {
    add("running");
  } else if (now->state == ThreadState::runnable) {
    add("waits for a CPU");
    const RunningThread* const other =
        now->cpu >= 0 ? threads.running_on(static_cast<std::uint32_t>(now->cpu)) : nullptr;
    if (other != nullptr && other->gapless && other->thread.tid != 0)
      print(text, " behind {}", ThreadName{other->thread, pid});
  } else {
    print(text, "{}blocked for {}", text.size() > 0 ? ", " : "", Duration{rise(now_ns_, now->begin_ns)});
    if (now->syscall > Syscall::other) print(text, " in {}", to_string(now->syscall));
  }
  return std::string(text.text());
}

SwitchesSeen IntervalSink::switches_seen() const {
  if (!analyzer_.scheduler_seen()) return SwitchesSeen::none;
  return analyzer_.threads().sees_all() ? SwitchesSeen::all : SwitchesSeen::ocaml;
}

/// "31.7ms of server/4242: waited for domain 1 ...", the second part without `with_program`.
std::string IntervalSink::sentence_about(const PauseDetails& pause, bool with_program) const {
  TextBuffer text;
  print(text, "{}", Duration{pause.duration_ns()});
  if (with_program) print(text, " in {}", ProcessName{pause.comm, pause.domain.pid});
  print(text, ", domain {}: {}", DomainName{pause.domain.domain, pause.domain.incarnation},
        blame_text(pause, blame_of(pause), switches_seen(), registry_->stacks()));
  return std::string(text.text());
}

CauseGroups& IntervalSink::causes_of(Activity& activity) {
  if (activity.causes != nullptr) return *activity.causes;
  if (with_causes_ >= max_with_causes) {
    // The one that matters least makes room.
    Activity* least = nullptr;
    for (auto& [index, other] : activities_)
      if (other.causes != nullptr && (least == nullptr || other.pause_ns < least->pause_ns)) least = &other;
    least->causes.reset();
    --with_causes_;
  }
  ++with_causes_;
  activity.causes = std::make_unique<CauseGroups>();
  return *activity.causes;
}

void IntervalSink::on_pause_begun(const DomainLife& domain, std::uint64_t time_ns) {
  activities_[domain.process].domains[domain.domain].pause_since_ns = time_ns;
}

void IntervalSink::on_pause_details(PauseDetails&& pause) {
  Activity& activity = activities_[pause.domain.process];
  Domain& domain = activity.domains[pause.domain.domain];
  const std::uint64_t ns = pause.duration_ns();
  domain.pause_since_ns.reset();
  ++domain.pauses;
  domain.worst_ns = std::max(domain.worst_ns, ns);
  activity.pauses.record(ns);
  activity.worst_ns = std::max(activity.worst_ns, ns);
  activity.pause_ns += ns;
  for (const PauseSection& part : pause.sections) {
    if (!part.own().leads) continue;
    ++activity.sections;
    const StwDomain* const last = part.section->last_to_arrive();
    if (last != nullptr)
      activity.arrival_ns = std::max(activity.arrival_ns, rise(last->arrived_ns, part.section->begin_ns));
  }
  pause.comm = registry_->process(pause.domain.process).name;
  causes_of(activity).add(pause);
  if (!worst_ || ns > worst_->duration_ns()) worst_ = std::move(pause);
}

void IntervalSink::on_unfinished(const DomainLife& domain, const PhaseEnd& /*root*/, Unfinished /*reason*/) {
  activities_[domain.process].domains[domain.domain].pause_since_ns.reset();
}

void IntervalSink::on_domain_gone(const DomainLife& domain, std::uint64_t /*time_ns*/) {
  const auto activity = activities_.find(domain.process);
  if (activity != activities_.end()) activity->second.domains.erase(domain.domain);
}

void IntervalSink::on_thread_interval(const ThreadInterval& interval) {
  if (interval.state != ThreadState::runnable && interval.state != ThreadState::on_cpu) return;
  ThreadTime* known = recent_times_.find(thread_times_, interval.pid);
  if (known == nullptr) known = &thread_times_[interval.pid];
  (interval.state == ThreadState::on_cpu ? known->cpu_ns : known->runnable_ns) +=
      rise(interval.end_ns, std::max(interval.begin_ns, begin_ns_));
}

}  // namespace rtev::top
