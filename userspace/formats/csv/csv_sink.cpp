// SPDX-License-Identifier: MIT
#include "formats/csv/csv_sink.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "stream/stw_phases.hpp"

namespace rtev {
namespace {

constexpr std::string_view done = "done", nanoseconds = "ns", words = "words";

CsvProcess process_of(const ProcessInfo& info) {
  return {.pid = info.pid,
          .start_ticks = info.start_ticks,
          .comm = info.comm,
          .exe = info.exe,
          .service = info.service.name,
          .version = info.service.version,
          .ocaml = info.runtime == ocaml_runtime ? std::string_view(info.version) : std::string_view()};
}

std::string_view phase_of(const DomainLife& domain, std::uint16_t phase, std::string& scratch) {
  const std::string_view name = phase_name(domain.family, phase);
  if (!name.empty()) return name;
  scratch = fmt::format("#{}", phase);
  return scratch;
}

/// What is known of a length that has no end: until the domain ended it lasted.
std::optional<std::uint64_t> known_ns(const PhaseEnd& phase, Unfinished reason) {
  return reason == Unfinished::ended ? std::optional(phase.end_ns - phase.begin_ns) : std::nullopt;
}

/// Nothing if all of it is unknown.
std::optional<TimeSplit> known_time(const TimeSplit& time) {
  return time.is_unknown() ? std::nullopt : std::optional(time);
}

std::optional<std::int64_t> known_bytes(std::uint64_t bytes) {
  return bytes == 0 ? std::nullopt : std::optional(csv_number(bytes));
}

/// "exit 0", "signal 9", "exec", "unknown".
std::string exit_state(std::int64_t detail) {
  const int status = static_cast<int>(detail);
  if (detail == exit_by_exec) return "exec";
  if (detail < 0) return "unknown";
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("exit {}", WEXITSTATUS(status));
}

/// Waits for the program are no part of a pause, and end in any order.
bool is_wait(const DomainLife& domain, std::uint16_t phase) {
  return phase == StwPhases::of(domain.family).condition_wait;
}

}  // namespace

CsvSink::CsvSink(Output& output, std::string label)
    : LineSink(output),
      writer_(out_, std::move(label)),
      spans_({.pattern = "*", .on_span = [this](const SpanEnd& end) { add_span(end); }}),
      stats_({.on_unlisted = [this](const ProcessStats& process) { add_figures(process, false); }}) {}

void CsvSink::header(const RunHeader& header) {
  header_ = header;
  now_ns_ = header.begin_ns();
  writer_.set_run(header);
  spans_.header(header);
  stats_.header(header);
  finder_.header(header);
  out_.add(csv_titles());
}

void CsvSink::consume(const Batch& batch, const Registry& registry) {
  if (closed()) return;
  registry_ = &registry;
  for (const Event& event : batch.events()) add(event, batch);
  spans_.consume(batch, registry);
  stats_.consume(batch, registry);
  registry_ = nullptr;
}

void CsvSink::summary(const RunSummary& summary, const Registry& registry) {
  registry_ = &registry;
  now_ns_ = std::max(now_ns_, summary.end_ns);
  finder_.finish(now_ns_);
  spans_.summary(summary, registry);
  stats_.summary(summary, registry);
  for (const ProcessStats& process : stats_.report(registry).processes) add_figures(process, !summary.complete);
  for (const auto& [index, image] : images_) {
    // A late event of a process that has its row already.
    if (image.how.empty() && registry.process(index).ended) continue;
    add_image(index, image, now_ns_, "running");
  }
  add_run(summary, registry);
  registry_ = nullptr;
  flush();
}

void CsvSink::add(const Event& event, const Batch& batch) {
  now_ns_ = std::max(now_ns_, event.time);
  const auto record = event.kind == EventKind::process ? batch.payload_as<ProcessRecord>(event) : std::nullopt;
  if (record) add_process(event, *record);
  finder_.add(event, batch, *registry_);
  time_.add(event, batch, *registry_);
  if (record && event.id == static_cast<std::uint16_t>(ProcessAction::exit)) end_process(event, *record);
  if (event.kind == EventKind::lost) {
    if (const auto loss = batch.payload_as<Loss>(event)) add_loss(event, *loss);
  } else if (event.kind < EventKind::lost) {
    add_ring_event(event, batch);
  }
}

void CsvSink::add_process(const Event& event, const ProcessRecord& record) {
  const auto action = static_cast<ProcessAction>(event.id);
  if (action == ProcessAction::exit) return;
  Image& image = see(record.process, registry_->process(record.process).pid, event.time);
  const bool begins = action == ProcessAction::found || action == ProcessAction::exec || action == ProcessAction::fork;
  if (begins) image.how = to_string(action);
}

void CsvSink::end_process(const Event& event, const ProcessRecord& record) {
  const auto image = images_.extract(record.process);
  if (image.empty()) return;
  state_ = exit_state(record.detail);
  add_image(record.process, image.mapped(), event.time, state_);
  const auto running = running_.find(registry_->process(record.process).pid);
  if (running != running_.end() && running->second == record.process) running_.erase(running);
}

CsvSink::Image& CsvSink::see(ProcessIndex index, std::int32_t pid, std::uint64_t time_ns) {
  const auto [image, is_new] = images_.try_emplace(index, Image{.begin_ns = std::max(time_ns, header_.begin_ns())});
  if (is_new) running_[pid] = index;
  return image->second;
}

void CsvSink::add_image(ProcessIndex index, const Image& image, std::uint64_t end_ns, std::string_view state) {
  const ProcessInfo& info = registry_->process(index);
  const CsvProcess process = process_of(info);
  const std::uint64_t length_ns = end_ns - std::min(end_ns, image.begin_ns);
  write({.kind = "process",
         .begin_ns = image.begin_ns,
         .duration_ns = length_ns,
         .process = process,
         .name = image.how,
         .value = known_bytes(info.max_rss_bytes),
         .unit = "bytes",
         .state = state});
  const auto waited_ns = known_count(image.waited_ns, !time_.switches_seen());
  if (waited_ns == 0) return;
  write({.kind = "figure",
         .begin_ns = image.begin_ns,
         .duration_ns = length_ns,
         .process = process,
         .name = "runnable_ns",
         .value = waited_ns.transform(csv_number),
         .unit = nanoseconds});
}

void CsvSink::add_ring_event(const Event& event, const Batch& batch) {
  CsvRow row{.begin_ns = event.time};
  switch (event.kind) {
    case EventKind::counter:
      row.kind = "counter";
      row.value = csv_number(event.value);
      if (const auto family = registry_->family_of(event)) row.unit = counter_unit(*family, event.id);
      break;
    case EventKind::lifecycle:
      row.kind = "lifecycle";
      row.value = event.signed_value();
      break;
    case EventKind::user_int:
      row.kind = "value";
      row.value = event.signed_value();
      break;
    case EventKind::user_unit:
      row.kind = "event";
      break;
    case EventKind::user_custom:
      row.kind = "event";
      row.value = csv_number(batch.payload(event).size());
      row.unit = "bytes";
      break;
    default:
      return;
  }
  row.name = name_of(event, *registry_, scratch_);
  if (row.kind == "event" && LibrarySpans::marks_span(row.name)) return;
  const ProcessInfo* const info = registry_->process_of(event);
  if (info == nullptr) return;
  row.process = process_of(*info);
  row.domain = Source::unpack(event.source).domain;
  write(row);
}

void CsvSink::add_loss(const Event& event, const Loss& loss) {
  const auto reason = static_cast<LossReason>(event.id);
  const bool is_of_words = reason != LossReason::dropped && !lost_samples(reason);
  CsvRow row{.kind = "loss",
             .begin_ns = loss.from_ns != 0 ? loss.from_ns : loss.to_ns,
             .name = is_of_words            ? "ring"
                     : lost_samples(reason) ? "samples"
                                            : "scheduler",
             .value = known_count(loss.words, true).transform(csv_number),
             .unit = is_of_words ? words : "records",
             .state = to_string(reason)};
  row.duration_ns = known_count(loss.to_ns - std::min(loss.to_ns, row.begin_ns), loss.from_ns == 0);
  if (const ProcessInfo* const info = registry_->process_of(event)) {
    row.process = process_of(*info);
    row.domain = Source::unpack(event.source).domain;
  }
  write(row);
}

void CsvSink::on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool /*certain*/) {
  if (domain.process != 0) see(domain.process, domain.pid, time_ns);
}

void CsvSink::on_domain_end(const DomainLife& domain, std::uint64_t /*time_ns*/) {
  phases_.erase(domain.key());
}

void CsvSink::on_pause_begin(const DomainLife& domain, const PhaseBegin& root) {
  meters_.begin(domain, root.time_ns);
  phases_[domain.key()].pause_begins = true;
}

void CsvSink::on_phase_begin(const DomainLife& domain, const PhaseBegin& phase) {
  if (is_wait(domain, phase.phase)) return;
  Phases& phases = phases_[domain.key()];
  phases.open.push_back({.begin_ns = phase.time_ns, .is_pause = std::exchange(phases.pause_begins, false)});
}

/// The phase ends, which is the innermost of its domain.
CsvSink::OpenPhase CsvSink::take(const DomainLife& domain, const PhaseEnd& phase) {
  Phases& phases = phases_[domain.key()];
  if (is_wait(domain, phase.phase) || phases.open.empty()) return {};
  const OpenPhase ended = phases.open.back();
  phases.open.pop_back();
  return ended;
}

void CsvSink::on_phase_end(const DomainLife& domain, const PhaseEnd& phase) {
  const OpenPhase ended = take(domain, phase);
  const std::uint64_t length_ns = phase.end_ns - phase.begin_ns;
  const std::uint64_t own_ns = length_ns - std::min(length_ns, ended.inner_ns);
  Phases& phases = phases_[domain.key()];
  if (!phases.open.empty() && !is_wait(domain, phase.phase)) phases.open.back().inner_ns += length_ns;
  if (ended.is_pause) {  // it has a row as a pause
    phases.pause_own_ns = own_ns;
    return;
  }
  write({.kind = "phase",
         .begin_ns = phase.begin_ns,
         .duration_ns = length_ns,
         .process = process_of(registry_->process(domain.process)),
         .domain = domain.domain,
         .name = phase_of(domain, phase.phase, scratch_),
         .value = csv_number(own_ns),
         .unit = nanoseconds,
         .state = done});
}

void CsvSink::on_phase_dropped(const DomainLife& domain, const PhaseEnd& phase, Unfinished reason) {
  if (take(domain, phase).is_pause) return;
  write({.kind = "phase",
         .begin_ns = phase.begin_ns,
         .duration_ns = known_ns(phase, reason),
         .process = process_of(registry_->process(domain.process)),
         .domain = domain.domain,
         .name = phase_of(domain, phase.phase, scratch_),
         .value = std::nullopt,
         .unit = nanoseconds,
         .state = to_string(reason)});
}

void CsvSink::on_pause_end(const DomainLife& domain, const PhaseEnd& root) {
  write({.kind = "pause",
         .begin_ns = root.begin_ns,
         .duration_ns = root.end_ns - root.begin_ns,
         .process = process_of(registry_->process(domain.process)),
         .domain = domain.domain,
         .name = phase_of(domain, root.phase, scratch_),
         .value = csv_number(phases_[domain.key()].pause_own_ns),
         .unit = nanoseconds,
         .state = done,
         .time = meters_.end(domain, root).and_then(known_time)});
}

void CsvSink::on_pause_dropped(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) {
  meters_.end(domain, root);
  write({.kind = "pause",
         .begin_ns = root.begin_ns,
         .duration_ns = known_ns(root, reason),
         .process = process_of(registry_->process(domain.process)),
         .domain = domain.domain,
         .name = phase_of(domain, root.phase, scratch_),
         .value = std::nullopt,
         .unit = nanoseconds,
         .state = to_string(reason),
         .time = std::nullopt});
}

void CsvSink::on_thread_interval(const ThreadInterval& interval) {
  if (interval.state != ThreadState::runnable) return;
  const auto index = running_.find(interval.pid);
  if (index == running_.end()) return;
  const std::uint64_t length_ns = interval.end_ns - std::min(interval.end_ns, interval.begin_ns);
  images_[index->second].waited_ns += length_ns;
  if (length_ns < min_wait_ns) return;
  write({.kind = "wait",
         .begin_ns = interval.begin_ns,
         .duration_ns = length_ns,
         .process = process_of(registry_->process(index->second)),
         .domain = interval.domain,
         .name = interval.preempted_by ? interval.preempted_by->comm() : std::string_view(),
         .value = interval.tid,
         .unit = "tid",
         .state = interval.preempted_by ? "preempted"
                  : interval.woken_by   ? "woken"
                                        : "unknown",
         .time = TimeSplit{.runnable = length_ns}});
}

void CsvSink::add_span(const SpanEnd& end) {
  const Span& span = end.span;
  const bool is_known = !end.unfinished.has_value();
  write({.kind = "span",
         .begin_ns = span.begin_ns,
         .duration_ns = is_known ? std::optional(span.length_ns()) : std::nullopt,
         .process = process_of(registry_->process(end.process)),
         .domain = span.domain,
         .name = end.name,
         .value = known_count(span.paused_ns, !is_known || header_.not_recorded.lacks_pauses()).transform(csv_number),
         .unit = nanoseconds,
         .state = end.unfinished ? to_string(*end.unfinished) : done,
         .time = is_known ? known_time({.on_cpu = span.time.code + span.time.gc,
                                        .runnable = span.time.no_cpu,
                                        .sleeping = span.time.domains + span.time.blocked,
                                        .unknown = span.time.unknown})
                          : std::nullopt});
}

/// Those that are 0 are left out. `truncated`: what was lost is unknown.
void CsvSink::add_figures(const ProcessStats& process, bool truncated) {
  const StatsFigures& figures = process.figures;
  CsvRow row{
      .kind = "figure",
      .begin_ns = process.begin_ns,
      .duration_ns = figures.wall(),
      .process = {.pid = process.pid,
                  .start_ticks = process.start_ticks,
                  .comm = process.comm,
                  .exe = process.exe,
                  .ocaml = process.runtime == ocaml_runtime ? std::string_view(process.version) : std::string_view()}};
  const auto add = [&](std::string_view name, const std::optional<std::uint64_t>& value, std::string_view unit = {}) {
    if (value == 0) return;
    row.name = name;
    row.value = value.transform(csv_number);
    row.unit = unit;
    write(row);
  };
  add("domain_ns", figures.domain_time(), nanoseconds);
  add("cpu_ns", figures.cpu_ns, nanoseconds);
  add("gc_ns", figures.of_phases(figures.gc_ns), nanoseconds);
  add("gc_cpu_ns", figures.known_gc_cpu(), nanoseconds);
  add("minor_collections", figures.known_minor_collections());
  add("major_slices", figures.of_phases(figures.major_slices));
  add("major_cycles", figures.of_phases(figures.major_cycles));
  add("compactions", figures.of_phases(figures.compactions));
  add("minor_words", figures.known_minor_words(), words);
  add("promoted_words", figures.of_counters(figures.promoted_words), words);
  add("major_words", figures.major_words, words);
  for (std::size_t i = 0; i < figures.explicit_calls.size(); ++i)
    add(explicit_phases()[i], figures.of_phases(figures.explicit_calls[i]));
  for (std::size_t i = 0; i < figures.triggers.size(); ++i)
    add(trigger_counters()[i], figures.of_counters(figures.triggers[i]));
  add("user_events", figures.known_user_events());
  add("events", figures.known_events());
  add("losses", figures.of_losses(figures.losses, truncated));
  add("lost_words", figures.known_lost_words(truncated), words);
  add("lower_bound", figures.of_losses(figures.missing.any() ? 1 : 0, truncated));

  CsvRow heap = row;
  heap.kind = "heap";
  heap.duration_ns = 0;
  heap.unit = words;
  for (const auto& [name, trend] :
       {std::pair("heap_words", &process.heap_words), {"live_words", &process.live_words}}) {
    heap.name = name;
    for (const Trend::Sample& sample : trend->samples()) {
      heap.begin_ns = sample.time_ns;
      heap.value = csv_number(sample.value);
      write(heap);
    }
  }
  for (const DomainStats& domain : process.domains)
    write({.kind = "domain",
           .begin_ns = domain.begin_ns,
           .duration_ns = domain.figures.wall(),
           .process = row.process,
           .domain = domain.domain,
           .value = domain.figures.of_phases(domain.figures.gc_ns).transform(csv_number),
           .unit = nanoseconds,
           .state = domain.ended ? "ended" : "running"});
}

/// The row "run" is the last one of a file that is complete.
void CsvSink::add_run(const RunSummary& summary, const Registry& registry) {
  CsvRow row{.kind = "figure", .begin_ns = header_.begin_ns()};
  row.duration_ns = now_ns_ - std::min(now_ns_, row.begin_ns);
  const auto add = [&](std::string_view name, const std::optional<std::uint64_t>& value) {
    if (value == 0) return;
    row.name = name;
    row.value = value.transform(csv_number);
    write(row);
  };
  const auto known = [&](std::uint64_t count) { return known_count(count, !summary.complete); };
  for (const RunSummary::Drop& drop : summary.drops) add(scratch_ = "dropped_" + drop.kind, drop.count);
  add("rings_missed", known(summary.rings_missed));
  add("late", summary.late);
  add("forced", known(summary.forced));
  add("tracer_cpu_ns", known_count(summary.own_cpu_ns, true));
  row.kind = "run";
  row.name = header_.version;
  row.value = csv_number(registry.process_count());
  row.unit = "processes";
  row.state = summary.complete ? done : "truncated";
  write(row);
}

}  // namespace rtev
