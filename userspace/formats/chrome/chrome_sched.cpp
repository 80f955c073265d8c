// SPDX-License-Identifier: MIT
// ChromeSink: scheduling, for two kinds of viewers. Perfetto reads thread states as events of their own ("T", since
// v54) and shows them in rows of CPUs and threads, without their arguments. Other viewers ignore these events; for them
// there is a process "CPUs" with a thread for each CPU and a span for each time that a thread runs on it. Its arguments
// say who woke the thread and how long it waited. Such a span is a begin and an end, so that it is shown in a file that
// is cut before the end.
#include <algorithm>

#include "formats/chrome/chrome_sink.hpp"

namespace rtev {
namespace {

/// Between processes with domains and those without an index.
constexpr int cpus_sort_index = -1;
/// As many as there are tids for.
constexpr std::uint32_t max_cpus = INT32_MAX - cpus_pid;

std::int32_t row_tid(std::uint32_t cpu) {
  return cpus_pid + 1 + static_cast<std::int32_t>(cpu);
}

/// Which thread woke or preempted it.
void add_cause(ChromeEvent& event, const ThreadInterval& interval) {
  if (!interval.other) return;
  event.args();
  JsonWriter& json = event.json();
  json.key(interval.state == "R" ? "waker" : "preempted_by").object([&] {
    json.member("comm", interval.other->comm());
    json.member("pid", interval.other->pid);
    json.member("tid", interval.other->tid);
  });
}

}  // namespace

void ChromeSink::sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                              const Track* next) {
  const std::uint64_t time = in_order(context.event.time);
  if (prev != nullptr) thread_state(states_.leave(time, change, *prev));
  clear_cpu(change.cpu, time, to_string(change.state));
  if (next == nullptr) return;
  const ThreadStates::Ended waited = states_.enter(time, change, *next);
  thread_state(waited);
  enter_cpu(change.cpu, time, change.next, *next, waited);
}

void ChromeSink::wakeup(const EventContext& context, const Wakeup& wakeup, const Track* woken, const Track* /*by*/) {
  if (woken != nullptr) thread_state(states_.wake(in_order(context.event.time), wakeup, *woken));
}

void ChromeSink::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) {
  thread_state(states_.vanish(time, track));
  clear_cpu(cpu, time, "not seen");
}

/// A late event is shown at the newest time, so that it does not overlap what is already written.
std::uint64_t ChromeSink::in_order(std::uint64_t time) {
  sched_now_ = std::max(sched_now_, time);
  return sched_now_;
}

void ChromeSink::thread_state(const ThreadStates::Ended& ended) {
  if (!ended) return;
  start('T', ended->from, *ended->track);
  event_.name(ended->state, "sched");
  event_.complete(ended->to - ended->from);
  if (ended->state == "Running") {
    event_.args();
    event_.json().member("cpu", ended->cpu);
  }
  add_cause(event_, *ended);
  finish();
}

/// Null if there is no tid for it.
ChromeSink::CpuRow* ChromeSink::row_of(std::uint32_t cpu) {
  if (cpu >= max_cpus) return nullptr;
  if (rows_.empty()) {
    name_process(cpus_pid, "CPUs");
    sort_process(cpus_pid, cpus_sort_index);
  }
  const auto [row, is_new] = rows_.try_emplace(cpu);
  if (is_new) name_row(cpus_pid, row_tid(cpu), "cpu " + std::to_string(cpu), cpu);
  return &row->second;
}

void ChromeSink::enter_cpu(std::uint32_t cpu, std::uint64_t time, const Thread& thread, const Track& track,
                           const ThreadStates::Ended& waited) {
  CpuRow* const row = row_of(cpu);
  if (row == nullptr) return;
  row->is_busy = true;
  row->newest = std::max(row->newest, time);
  scratch_ = thread.comm();
  if (track.domain >= 0) scratch_.append(scratch_.empty() ? "" : " ").append(track.name);
  event_.start('B', row->newest, cpus_pid, row_tid(cpu));
  event_.name(scratch_.empty() ? no_name : scratch_, "sched");
  event_.args();
  event_.json().member("pid", track.pid);
  event_.json().member("tid", track.tid);
  event_.json().member("priority", thread.priority);
  if (waited && waited->other) event_.duration("waited", waited->to - waited->from);
  if (waited) add_cause(event_, *waited);
  finish();
}

void ChromeSink::clear_cpu(std::uint32_t cpu, std::uint64_t time, std::string_view why) {
  const auto row = rows_.find(cpu);
  if (row == rows_.end() || !row->second.is_busy) return;
  row->second.is_busy = false;
  row->second.newest = std::max(row->second.newest, time);
  event_.start('E', row->second.newest, cpus_pid, row_tid(cpu));
  event_.args();
  event_.json().member("left", why);
  finish();
}

}  // namespace rtev
