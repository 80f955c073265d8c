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

/// As Linux tools write it; empty for a state that is unknown or has no letter.
std::string_view state_name(const ThreadInterval& interval) {
  switch (interval.state) {
    case ThreadState::on_cpu:
      return "Running";
    case ThreadState::runnable:
      return interval.preempted_by ? "R+" : "R";
    case ThreadState::sleeping:
      return "S";
    case ThreadState::uninterruptible:
      return interval.left == LeftState::idle ? "I" : "D";
    case ThreadState::stopped:
      if (interval.left == LeftState::traced) return "t";
      return interval.left == LeftState::stopped ? "T" : std::string_view{};
    case ThreadState::unknown:
      break;
  }
  // It left its CPU unseen, some time before the end.
  return interval.first_state == ThreadState::on_cpu ? "Running" : std::string_view{};
}

/// Which thread woke or preempted it.
void add_cause(ChromeEvent& event, const ThreadInterval& interval) {
  const auto& cause = interval.preempted_by ? interval.preempted_by : interval.woken_by;
  if (!cause) return;
  event.args();
  JsonWriter& json = event.json();
  json.key(interval.preempted_by ? "preempted_by" : "waker").object([&] {
    json.member("comm", cause->comm());
    json.member("pid", cause->pid);
    json.member("tid", cause->tid);
  });
}

}  // namespace

void ChromeSink::sched_switch(const EventContext& context, const SchedSwitch& change, const Track* /*prev*/,
                              const Track* next) {
  clear_cpu(change.cpu, context.event.time, to_string(change.state));
  const bool has_waited = waited_ && waited_->tid == change.next.tid;
  if (next != nullptr) enter_cpu(change.cpu, context.event.time, change.next, *next, has_waited ? &*waited_ : nullptr);
  waited_.reset();
}

void ChromeSink::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& /*track*/) {
  clear_cpu(cpu, time, "not seen");
}

void ChromeSink::thread_interval(const Track& track, const ThreadInterval& interval) {
  if (interval.state == ThreadState::runnable) waited_ = interval;
  const std::string_view name = state_name(interval);
  if (name.empty()) return;
  start('T', interval.begin_ns, track);
  event_.name("sched", name);
  event_.complete(interval.end_ns - interval.begin_ns);
  if (name == "Running") {
    event_.args();
    event_.json().member("cpu", interval.cpu);
  }
  add_cause(event_, interval);
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
  if (is_new) name_row(cpus_pid, row_tid(cpu), "CPU " + std::to_string(cpu), cpu);
  return &row->second;
}

void ChromeSink::enter_cpu(std::uint32_t cpu, std::uint64_t time, const Thread& thread, const Track& track,
                           const ThreadInterval* waited) {
  CpuRow* const row = row_of(cpu);
  if (row == nullptr) return;
  row->is_busy = true;
  row->newest = std::max(row->newest, time);
  scratch_ = thread.comm();
  if (track.domain >= 0) scratch_.append(scratch_.empty() ? "" : " ").append(track.name);
  event_.start('B', row->newest, cpus_pid, row_tid(cpu));
  event_.name("sched", scratch_.empty() ? no_name : scratch_);
  event_.args();
  event_.json().member("pid", track.pid);
  event_.json().member("tid", track.tid);
  event_.json().member("priority", thread.priority);
  if (waited != nullptr) {
    event_.duration("waited", waited->end_ns - waited->begin_ns);
    add_cause(event_, *waited);
  }
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
