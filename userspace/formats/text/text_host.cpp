// SPDX-License-Identifier: MIT
// The lines of TextSink that do not come from rings: processes and the scheduler.
#include "base/escape.hpp"
#include "base/units.hpp"
#include "formats/text/process_text.hpp"
#include "formats/text/text_sink.hpp"
#include "stream/stack_text.hpp"

namespace rtev {
void TextSink::process_event(const Event& event, const Batch& batch, const Registry& registry) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return;
  const ProcessInfo& info = registry.process(record->process);
  const Style style{ansi_cyan, false};
  begin_line({.time = event.time, .pid = info.pid, .comm = info.name}, style);
  out_.add("process ");
  add_process_event(out_, static_cast<ProcessAction>(event.id), *record, info);
  finish_line(event, style);
  spans_.add({event, batch, registry});
}

void TextSink::switch_event(const Event& event, const Batch& batch) {
  const auto change = batch.payload_as<SchedSwitch>(event);
  if (!change) return;
  const Thread &prev = change->prev, &next = change->next;
  const bool any_tracked = prev.tracked || next.tracked;
  // Without a tracked thread (--sched all) there is a line for both threads, except the idle thread.
  if (prev.tracked || (!any_tracked && prev.pid != 0)) {
    begin_thread_line(event, prev);
    out_.add("off CPU ", change->cpu);
    after(event, prev, true);
    out_.add("  ", to_string(change->state));
    if (change->syscall == Syscall::none || change->syscall > Syscall::other)
      out_.add(" in ", to_string(change->syscall));
    if (change->state == LeftState::preempted) {
      out_.add(" by ");
      other_thread(next);
    }
    if (prev.holds_lock) out_.add("  (lock held)");
    finish_thread_line(event, prev);
  }
  if (next.tracked || (!any_tracked && next.pid != 0)) {
    begin_thread_line(event, next);
    out_.add("on CPU ", change->cpu);
    after(event, next, false);
    finish_thread_line(event, next);
  }
}

void TextSink::wakeup_event(const Event& event, const Batch& batch) {
  const auto wakeup = batch.payload_as<Wakeup>(event);
  if (!wakeup) return;
  begin_thread_line(event, wakeup->woken);
  out_.add("woken by ");
  other_thread(wakeup->by);
  out_.add(" (CPU ", wakeup->cpu, ')');
  after(event, wakeup->woken, false);
  finish_thread_line(event, wakeup->woken);
}

/// The innermost OCaml function; with TextOptions::all_frames all of them, each with its caller behind it.
void TextSink::sample_event(const Event& event, const Batch& batch, const Registry& registry) {
  const auto sample = batch.payload_as<Sample>(event);
  if (!sample) return;
  const ProcessInfo& info = registry.process(sample->process);
  begin_line({.time = event.time, .pid = sample->pid, .comm = info.name, .domain = sample->domain}, sched_style);
  switch (static_cast<SampleKind>(event.id)) {
    case SampleKind::off_cpu:
      out_.add("slept ");
      add_duration(out_, sample->weight);
      out_.add(" in ");
      break;
    case SampleKind::allocation:
      out_.add("allocates in ");
      break;
    default:
      out_.add("runs ");
  }
  const StackTable& stacks = registry.stacks();
  if (!options_.all_frames) {
    add_frame(out_, stacks.innermost_ocaml(sample->stack));
  } else {
    std::string_view before;
    stacks.for_each_frame(sample->stack, [&](FrameIndex, const StackFrame& frame) {
      out_.add(before);
      add_frame(out_, frame);
      before = " < ";
    });
  }
  if (sample->tid != sample->pid) out_.add("  tid ", sample->tid);
  finish_line(event, sched_style);
}

/// How long the thread has been in the state that the event ends, if that is known.
void TextSink::after(const Event& event, const Thread& thread, bool was_on_cpu) {
  const auto ended = threads_.current(thread.tid, event.time);
  if (!ended || ended->pid != thread.pid || ended->state == ThreadState::unknown || ended->end_ns == ended->begin_ns ||
      (ended->state == ThreadState::on_cpu) != was_on_cpu)
    return;
  out_.add("  after ");
  add_duration(out_, ended->end_ns - ended->begin_ns);
  if (!was_on_cpu) out_.add(' ', to_string(ended->state));
}

void TextSink::begin_thread_line(const Event& event, const Thread& thread) {
  begin_line({.time = event.time, .pid = thread.pid, .comm = thread.comm(), .domain = thread.domain}, sched_style);
}

void TextSink::finish_thread_line(const Event& event, const Thread& thread) {
  if (thread.tid != thread.pid) out_.add("  tid ", thread.tid);
  if (thread.role == ThreadRole::backup || thread.role == ThreadRole::tick) {
    out_.add("  ", to_string(thread.role), " thread");
  }
  finish_line(event, sched_style);
}

void TextSink::other_thread(const Thread& thread) {
  add_escaped(out_, thread.comm());
  out_.add('/', thread.tid);
}

}  // namespace rtev
