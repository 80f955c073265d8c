// SPDX-License-Identifier: MIT
// The lines of TextSink that do not come from rings: processes and the scheduler.
#include <sys/wait.h>

#include <cstring>

#include "base/enum_names.hpp"
#include "base/escape.hpp"
#include "formats/text/text_sink.hpp"

namespace rtev {
namespace {

std::string_view explain(Unreadable why) {
  switch (why) {
    case Unreadable::file_system:
      return "the file system of its ring may not answer";
    case Unreadable::no_answer:
      return "its file system does not answer";
    case Unreadable::memory:
      return "rings take too much memory (--memory-limit) or too many file descriptors";
    case Unreadable::other_user:
      return "its ring file belongs to another user";
  }
  return "unknown";
}

std::string_view explain(EnableResult result) {
  static constexpr std::string_view texts[]{"events on",
                                            "events resumed",
                                            "nothing to do",
                                            "not done: it ended",
                                            "not done: it runs no OCaml 5 program",
                                            "not done: its version of OCaml is not one that was tested",
                                            "not done: its program lacks symbols of the runtime",
                                            "not done: its memory may not be written",
                                            "not done: its memory does not hold what it should",
                                            "not done: it cannot make its ring in its directory",
                                            "not done: there is too little space for its ring",
                                            "not done: its limits are too small for its ring",
                                            "not done: its control group has too little memory left for its ring",
                                            "not done: a filter of system calls might stop it (--allow-confined)",
                                            "not done: a security profile might stop it (--allow-confined)",
                                            "not done: a debugger is attached",
                                            "not done: it or another process of its program came to harm",
                                            "not done: it did not run in time",
                                            "not done: its memory, or the kernel, did not answer in time",
                                            "not done: it paused its events itself",
                                            "switched off again by another run of rtev-bpf"};
  return name_at(texts, result);
}

}  // namespace

void TextSink::process_event(const Event& event, const Batch& batch, const Registry& registry) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return;
  const ProcessInfo& info = registry.process(record->process);
  const Style style{ansi_cyan, false};
  begin_line({.time = event.time, .pid = info.pid, .comm = info.comm}, style);
  out_.add("process ");
  switch (static_cast<ProcessAction>(event.id)) {
    case ProcessAction::found:
      out_.add("found");
      image(info);
      break;
    case ProcessAction::exec:
      out_.add("exec");
      image(info);
      break;
    case ProcessAction::fork:
      out_.add("forked by ", record->peer);
      image(info);
      break;
    case ProcessAction::ring:
      out_.add("ring opened  ");
      add_escaped(out_, info.ring_path);
      if (info.runtime == ocaml_runtime) break;
      out_.add("  of ");
      add_escaped(out_, info.runtime);
      break;
    case ProcessAction::pause:
      out_.add("events paused");
      break;
    case ProcessAction::resume:
      out_.add("events resumed");
      break;
    case ProcessAction::stop:
      out_.add("ring removed");
      break;
    case ProcessAction::probe:
      out_.add("no ring: traced by probes");
      break;
    case ProcessAction::unreadable:
      out_.add("unreadable: ", explain(static_cast<Unreadable>(record->detail)), "  ");
      add_escaped(out_, info.ring_path);
      break;
    case ProcessAction::enable:
      out_.add("enable: ", explain(static_cast<EnableResult>(record->detail)));
      break;
    case ProcessAction::exit:
      exit_status(record->detail);
      break;
  }
  finish_line(event, style);
  spans_.add({event, batch, registry});
}

void TextSink::image(const ProcessInfo& info) {
  if (info.runtime != ocaml_runtime) {
    out_.add("  ");
    add_escaped(out_, info.runtime);
  } else if (out_.add("  OCaml "); info.version.empty()) {
    out_.add(to_string(info.family), " (", to_string(info.family_source), ')');
  } else {
    add_escaped(out_, info.version);
  }
  out_.add("  ");
  add_escaped(out_, info.exe);
  if (info.ns_pid != 0 && info.ns_pid != info.pid) out_.add("  (pid ", info.ns_pid, " in its namespace)");
}

void TextSink::exit_status(std::int64_t status) {
  const int wait_status = static_cast<int>(status);
  if (status == exit_by_exec) {
    out_.add("ended by exec of another program");
  } else if (status < 0) {
    out_.add("ended");
  } else if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    out_.add("killed by signal ", signal);
    if (const char* name = ::sigabbrev_np(signal)) out_.add(" (", name, ')');
  } else {
    out_.add("exited with code ", WEXITSTATUS(wait_status));
  }
}

void TextSink::switch_event(const Event& event, const Batch& batch) {
  const auto change = batch.payload_as<SchedSwitch>(event);
  if (!change) return;
  const Thread &prev = change->prev, &next = change->next;
  const bool any_tracked = prev.tracked || next.tracked;
  // Without a tracked thread (--sched all) there is a line for both threads, except the idle thread.
  if (prev.tracked || (!any_tracked && prev.pid != 0)) {
    begin_thread_line(event, prev);
    out_.add("off CPU ", change->cpu, "  ", to_string(change->state));
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
  finish_thread_line(event, wakeup->woken);
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
