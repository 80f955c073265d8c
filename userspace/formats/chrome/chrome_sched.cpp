// SPDX-License-Identifier: MIT
// What threads and cpus do, for two kinds of viewers: Perfetto knows thread states as events of their own ("T", since
// v54), fills its rows of cpus and its rows of states from them, and shows none of their arguments. All others ignore
// them, and so there is a process "CPUs" as well, with a thread a cpu and a span for each turn on it. Its arguments say
// who woke the thread and how long it waited, which no viewer has another place for. Turns are begins and ends, so that
// those that go on when a file is cut are seen, too.
#include <algorithm>

#include "formats/chrome/chrome_sink.hpp"

namespace rtev {
namespace {

/// Before processes without an index and after those with domains.
constexpr int cpus_sort_index = -1;
/// There are tids for so many.
constexpr std::uint32_t max_cpus = INT32_MAX - cpus_pid;

std::int32_t row_tid(std::uint32_t cpu) {
  return cpus_pid + 1 + static_cast<std::int32_t>(cpu);
}

/// Who made a thread wait for a cpu.
void add_cause(ChromeEvent& event, const ThreadInterval& interval) {
  if (!interval.other) return;
  event.args();
  event.begin_object(interval.state == "R" ? "waker" : "preempted_by");
  event.text("comm", interval.other->comm());
  event.number("pid", interval.other->pid);
  event.number("tid", interval.other->tid);
  event.end_object();
}

}  // namespace

void ChromeSink::sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                              const Track* next) {
  const std::uint64_t time = in_order(context.event.time);
  if (prev != nullptr) thread_state(states_.leave(time, change, *prev));
  vacate(change.cpu, time, to_string(change.state));
  if (next == nullptr) return;
  const ThreadStates::Ended waited = states_.enter(time, change, *next);
  thread_state(waited);
  occupy(change.cpu, time, change.next, *next, waited);
}

void ChromeSink::wakeup(const EventContext& context, const Wakeup& wakeup, const Track* woken, const Track* /*by*/) {
  if (woken != nullptr) thread_state(states_.wake(in_order(context.event.time), wakeup, *woken));
}

void ChromeSink::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) {
  thread_state(states_.vanish(time, track));
  vacate(cpu, time, "not seen");
}

/// What comes late is shown where it came, or else it would lie over what is written already.
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
    event_.number("cpu", ended->cpu);
  }
  add_cause(event_, *ended);
  finish();
}

/// Null where there is no room for it.
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

void ChromeSink::occupy(std::uint32_t cpu, std::uint64_t time, const Thread& thread, const Track& track,
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
  event_.number("pid", track.pid);
  event_.number("tid", track.tid);
  event_.number("priority", thread.priority);
  if (waited && waited->other) event_.duration("waited", waited->to - waited->from);
  if (waited) add_cause(event_, *waited);
  finish();
}

void ChromeSink::vacate(std::uint32_t cpu, std::uint64_t time, std::string_view why) {
  const auto row = rows_.find(cpu);
  if (row == rows_.end() || !row->second.is_busy) return;
  row->second.is_busy = false;
  row->second.newest = std::max(row->second.newest, time);
  event_.start('E', row->second.newest, cpus_pid, row_tid(cpu));
  event_.args();
  event_.text("left", why);
  finish();
}

}  // namespace rtev
