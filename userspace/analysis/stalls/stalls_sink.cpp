// SPDX-License-Identifier: MIT
#include "analysis/stalls/stalls_sink.hpp"

#include <algorithm>
#include <functional>
#include <ranges>
#include <tuple>

namespace rtev {

Stalls::~Stalls() = default;

void Stalls::header(const RunHeader& header) {
  header_ = header;
  finder_.header(header);
  last_ns_ = header.begin_ns();
}

void Stalls::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  report_.stacks = &registry.stacks();
  for (const Event& event : batch.events()) {
    last_ns_ = std::max(last_ns_, event.time);
    switch (event.kind) {
      case EventKind::sched_switch:
      case EventKind::wakeup:
        switch_threads(event, batch, registry);
        break;
      case EventKind::process:
        process_event(event, batch, registry);
        break;
      case EventKind::sample:
        break;
      case EventKind::user_begin:
      case EventKind::user_end:
        user_span(event, batch, registry);
        break;
      case EventKind::user_unit:
      case EventKind::user_int:
      case EventKind::user_custom:
        user_span(event, batch, registry);
        [[fallthrough]];
      default:
        dropped_.add(event, batch);
        threads_.add(event, batch, registry);
        finder_.add(event, batch, registry);
        break;
    }
    tasks_.add(event, batch, registry);
    samples_.add(event, batch, registry);
  }
  registry_ = nullptr;
}

void Stalls::switch_threads(const Event& event, const Batch& batch, const Registry& registry) {
  report_.scheduler_seen = true;
  threads_.add(event, batch, registry);
  const auto change = batch.payload_as<SchedSwitch>(event);
  if (!change) return;
  if (change->syscall != Syscall::unknown) report_.syscalls_seen = true;
  if (change->state != LeftState::dead) return;
  if (const auto loop = loops_.find(change->prev.tid); loop != loops_.end()) {
    finish(loop->second);
    loops_.erase(loop);
  }
}

void Stalls::process_event(const Event& event, const Batch& batch, const Registry& registry) {
  // Pauses must end before their threads are forgotten.
  finder_.add(event, batch, registry);
  threads_.add(event, batch, registry);
  read_programs_.add(event, batch, registry);
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return;
  const std::int32_t pid = registry.process(record->process).pid;
  if (event.id != static_cast<std::uint16_t>(ProcessAction::exit)) {
    if (images_.size() < ThreadTracker::Limits{}.threads) images_[pid] = record->process;
    return;
  }
  for (auto loop = loops_.begin(); loop != loops_.end();) {
    if (loop->second.pid == pid) {
      finish(loop->second);
      loop = loops_.erase(loop);
    } else {
      ++loop;
    }
  }
  images_.erase(pid);
  lost_until_.erase(record->process);
}

void Stalls::user_span(const Event& event, const Batch& batch, const Registry& registry) {
  const Source source = Source::unpack(event.source);
  const RingInfo* const ring = registry.ring(source.slot);
  if (!ring) return;
  const auto open_spans = [&]() -> auto& { return domains_[{ring->process, source.domain}].spans; };
  const std::int32_t pid = registry.process(ring->process).pid;
  if (event.kind == EventKind::user_begin)
    return open_spans().begin({.slot = source.slot, .event = event.id, .begin_ns = event.time});
  if (event.kind == EventKind::user_end) return end_span(open_spans().end(event.id), pid, event);
  const auto what = libraries_.add(event, batch, *ring);
  if (!what) return;
  switch (what->what) {
    case LibrarySpanEvent::What::begin:
      return open_spans().begin({.slot = source.slot,
                                 .begin_ns = event.time,
                                 .of_library = true,
                                 .fiber = what->fiber,
                                 .name = std::string(what->name)});
    case LibrarySpanEvent::What::end:
      return end_span(open_spans().end(*what), pid, event);
    case LibrarySpanEvent::What::exit:
      return open_spans().end_fiber(*what->fiber);
  }
}

void Stalls::end_span(const std::optional<OpenSpan>& span, std::int32_t pid, const Event& event) {
  if (!span) return;
  if (LoopThread* const thread = loop_of(pid, Source::unpack(event.source).domain))
    thread->loop.add_span(*span, event.time);
}

void Stalls::on_task_interval(ProcessIndex process, const Task& task, const TaskInterval& interval) {
  if (interval.state != TaskState::running || interval.length_ns() < options_.min_ns / 2) return;
  if (LoopThread* const thread = loop_of(registry_->process(process).pid, interval.domain))
    task_ran(thread->loop, task, interval.begin_ns, interval.end_ns);
}

/// In the present turn of the loop.
void Stalls::task_ran(EventLoop& loop, const Task& task, std::uint64_t begin_ns, std::uint64_t end_ns) const {
  const std::uint64_t ns = loop.longest_run(begin_ns, end_ns);
  if (ns == 0 || ns < options_.min_ns / 2) return;
  TextBuffer name;
  append(name, TaskName{task});
  loop.turn().task = name.text();
  loop.turn().task_ns = ns;
}

/// Of the thread that runs the domain, if it has one.
Stalls::LoopThread* Stalls::loop_of(std::int32_t pid, std::uint16_t domain) {
  const auto tid = threads_.writer_of(pid, domain);
  const auto loop = tid ? loops_.find(*tid) : loops_.end();
  return loop != loops_.end() ? &loop->second : nullptr;
}

void Stalls::on_thread_interval(const ThreadInterval& interval) {
  auto loop = loops_.find(interval.tid);
  if (loop != loops_.end() && loop->second.pid != interval.pid) {
    loops_.erase(loop);
    loop = loops_.end();
  }
  if (is_wait_for_events(interval)) return wait_for_events(interval);
  if (loop == loops_.end()) return;
  EventLoop& events = loop->second.loop;
  events.add(interval);
  if (interval.state != ThreadState::runnable) return;
  cpus_.each(interval.cpu, interval.begin_ns, interval.end_ns, [&](const CpuWait& wait) {
    if (wait.by && wait.by->tid != 0 && wait.had == CpuWait::Had::throughout) events.add_wait(*wait.by, wait.ns);
  });
}

void Stalls::wait_for_events(const ThreadInterval& interval) {
  const ThreadRole role = threads_.role(interval.tid);
  if (role == ThreadRole::backup || role == ThreadRole::tick) return;
  auto loop = loops_.find(interval.tid);
  if (loop == loops_.end()) {
    if (loops_.size() >= max_loops) {
      ++report_.not_followed;
      return;
    }
    // Before the first wait the length of its turn is unknown.
    loop = loops_.emplace(interval.tid, LoopThread{.pid = interval.pid, .loop = EventLoop(interval.begin_ns)}).first;
  }
  LoopThread& thread = loop->second;
  thread.call = interval.syscall;
  if (interval.domain >= 0) thread.domain = interval.domain;
  const bool slept = is_blocked(interval.state);
  const auto turn = long_turn(interval.tid, thread, interval.begin_ns);
  if (turn && options_.on_stall && thread.loop.is_loop() && thread.loop.is_stall(turn->stall.length_ns())) {
    if (const auto image = images_.find(thread.pid); image != images_.end())
      options_.on_stall(image->second, turn->stall);
  }
  thread.loop.end_turn(interval.begin_ns, slept ? interval.end_ns : interval.begin_ns, turn);
  // Events came before it slept, or it is unknown when it woke.
  if (!slept) thread.loop.add(interval);
}

std::optional<EventLoop::LongTurn> Stalls::long_turn(std::int32_t tid, LoopThread& thread, std::uint64_t end_ns) {
  if (end_ns - std::min(end_ns, thread.loop.turn().begin_ns) < options_.min_ns) return std::nullopt;
  if (const auto image = images_.find(thread.pid); image != images_.end() && thread.domain >= 0) {
    if (const Task* const task = tasks_.running(image->second, static_cast<std::uint16_t>(thread.domain)))
      task_ran(thread.loop, *task, task->since_ns, end_ns);
    const auto domain = domains_.find({image->second, static_cast<std::uint16_t>(thread.domain)});
    if (domain != domains_.end())
      for (const OpenSpan& span : domain->second.spans.all()) thread.loop.add_span(span, end_ns);
  }
  auto turn = thread.loop.long_turn(end_ns, options_.min_ns);
  if (!turn) return turn;
  turn->stall.pid = thread.pid;
  turn->stall.tid = tid;
  turn->stall.knows_pauses = knows_pauses(thread.pid, turn->stall.begin_ns);
  turn->stall.stacks = samples_.between(tid, turn->stall.begin_ns, end_ns);
  turn->stall.domain = thread.domain;
  if (turn->span && turn->span->of_library)
    turn->stall.span = turn->span->name;
  else if (const RingInfo* const ring = turn->span && registry_ ? registry_->ring(turn->span->slot) : nullptr;
           ring && ring->user_event_name)
    turn->stall.span = ring->user_event_name(turn->span->event);
  return turn;
}

void Stalls::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  const auto tid = threads_.writer_of(life.pid, life.domain);
  if (!tid || !loops_.contains(*tid)) return;
  Domain& domain = domains_[{life.process, life.domain}];
  domain.pause_tid = *tid;
  domain.pause_begin = threads_.at(*tid, root.time_ns);
}

void Stalls::on_pause_end(const DomainLife& life, const PhaseEnd& root) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end()) return;
  const std::int32_t tid = std::exchange(domain->second.pause_tid, 0);
  const auto loop = loops_.find(tid);
  if (tid == 0 || loop == loops_.end()) return;
  loop->second.loop.turn().in_pauses +=
      ThreadTracker::between(domain->second.pause_begin, threads_.at(tid, root.end_ns));
}

/// Whether no phase of the program is missing since then.
bool Stalls::knows_pauses(std::int32_t pid, std::uint64_t since_ns) const {
  const auto image = images_.find(pid);
  if (header_.not_recorded.lacks_pauses() || image == images_.end() || registry_ == nullptr) return false;
  const auto lost = lost_until_.find(image->second);
  return events_read(registry_->process(image->second)) == EventsRead::yes &&
         (lost == lost_until_.end() || lost->second < since_ns);
}

void Stalls::on_loss(const DomainLife& life, const Loss& loss) {
  forget(life);
  report_.lost.add(loss);
  if (lost_until_.size() < ThreadTracker::Limits{}.threads || lost_until_.contains(life.process))
    lost_until_[life.process] = loss.to_ns;
}

void Stalls::forget(const DomainLife& life) {
  domains_.erase({life.process, life.domain});
  libraries_.forget(life.process, life.domain);
}

void Stalls::finish(const LoopThread& thread) {
  report_.turns_ns += thread.loop.total_ns();
  report_.unknown_ns += thread.loop.unknown_ns();
  const auto image = images_.find(thread.pid);
  if (!thread.loop.is_loop() || image == images_.end()) return;
  if (!programs_.contains(image->second) && programs_.size() >= max_programs) {
    ++report_.not_followed;
    return;
  }
  LoopProgram& program = programs_[image->second];
  program.pid = thread.pid;
  program.call = thread.call;
  ++program.threads;
  program.turns.merge(thread.loop.turns());
  program.unknown_turns += thread.loop.unknown_turns();
  for (const EventLoop::LongTurn& turn : thread.loop.long_turns()) {
    if (!thread.loop.is_stall(turn.stall.length_ns())) continue;
    program.lengths.record(turn.stall.length_ns());
    program.stalls.push_back(turn.stall);
  }
  std::ranges::sort(program.stalls, [](const Stall& a, const Stall& b) {
    return std::tuple(b.length_ns(), a.begin_ns, a.tid) < std::tuple(a.length_ns(), b.begin_ns, b.tid);
  });
  if (program.stalls.size() > max_stalls) program.stalls.resize(max_stalls);
}

void Stalls::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  registry_ = &registry;
  dropped_.add(summary);
  threads_.finish(last_ns_);
  for (auto& [tid, thread] : loops_) {
    auto turn = long_turn(tid, thread, last_ns_);
    if (turn) turn->stall.has_returned = false;
    if (turn && thread.loop.is_loop()) thread.loop.end_turn(last_ns_, last_ns_, turn);
    finish(thread);
  }
  loops_.clear();
  registry_ = nullptr;
  for (auto& [index, program] : programs_) {
    program.comm = registry.process(index).name;
    report_.programs.push_back(std::move(program));
  }
  programs_.clear();
  std::ranges::sort(report_.programs, [](const LoopProgram& a, const LoopProgram& b) {
    return std::tuple(b.lengths.max(), b.turns.max(), a.pid) < std::tuple(a.lengths.max(), a.turns.max(), b.pid);
  });
  report_.version = header_.version;
  report_.run_ns = header_.start_ns;
  report_.run_realtime_ns = header_.start_realtime_ns;
  report_.start_ns = header_.begin_ns();
  report_.end_ns = last_ns_;
  report_.truncated = !summary.complete;
  report_.not_recorded = header_.not_recorded;
  report_.not_recorded.note(summary.events);
  report_.read_programs = read_programs_.programs(registry);
  report_.lacks = lacks_of(with_scheduler_gaps(summary, scheduler_gaps()), registry);
  report_.min_ns = options_.min_ns;
  report_.top = options_.top;
  report_.full = options_.full;
  report_.sample_interval_ns = options_.sample_interval_ns;
  report_.input = options_.input;
  report_.scheduler_dropped = dropped_.count();
}

LimitedDurations Stalls::limited() const {
  LimitedDurations lengths;
  lengths.all.reserve(report_.programs.size());
  for (const LoopProgram& program : report_.programs)
    lengths.all.push_back({.what = "stalls", .comm = program.comm, .pid = program.pid, .durations = &program.lengths});
  if (!report_.scheduler_seen) {
    lengths.why_none = "there were no scheduler events";
  } else if (std::ranges::all_of(report_.programs, [](const LoopProgram& program) {
               return program.turns.count() == 0 && program.lengths.count() == 0;
             })) {
    lengths.why_none = "no event loop was seen";
  }
  return lengths;
}

}  // namespace rtev
