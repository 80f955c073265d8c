// SPDX-License-Identifier: MIT
#include "stream/thread_tracker.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rtev {
namespace {

ThreadState state_after(LeftState left) {
  using enum ThreadState;
  static constexpr std::array after{runnable, sleeping, uninterruptible, stopped, stopped, stopped, uninterruptible};
  const auto index = static_cast<std::size_t>(left);
  return index < after.size() ? after[index] : stopped;
}

std::int32_t cpu_number(std::uint32_t cpu) {
  return static_cast<std::int32_t>(cpu & INT32_MAX);
}

bool is_on(const ThreadInterval& interval, std::uint32_t cpu) {
  return interval.state == ThreadState::on_cpu && interval.cpu == cpu_number(cpu);
}

}  // namespace

ThreadTracker::~ThreadTracker() = default;

void ThreadTracker::add(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::sched_switch:
      if (const auto change = batch.payload_as<SchedSwitch>(event)) add(event.time, *change);
      return;
    case EventKind::wakeup:
      if (const auto wakeup = batch.payload_as<Wakeup>(event)) add(event.time, *wakeup);
      return;
    case EventKind::lost:
      if (!is_sched_loss(event)) return;
      if (const auto loss = batch.payload_as<Loss>(event)) lose(loss->from_ns, loss->to_ns);
      return;
    case EventKind::process: {
      const auto record = batch.payload_as<ProcessRecord>(event);
      if (!record || event.id != static_cast<std::uint16_t>(ProcessAction::exit)) return;
      const std::int32_t pid = registry.process(record->process).pid;
      // After an exec the process keeps its thread; the death of its other threads is seen.
      if (record->detail == exit_by_exec) {
        forget_domains(pid);
      } else {
        forget_process(pid, event.time);
      }
      return;
    }
    default:
      return;
  }
}

void ThreadTracker::add(std::uint64_t time_ns, const SchedSwitch& change) {
  sees_all_ = sees_all_ || (!change.prev.tracked && !change.next.tracked);
  const bool is_latest = switch_cpu(time_ns, change);
  if (change.prev.tracked) {
    leave(time_ns, change);
  } else {
    see_untracked(change.prev.tid, time_ns);
  }
  if (change.next.tracked) {
    enter(time_ns, change, !is_latest);
  } else {
    see_untracked(change.next.tid, time_ns);
  }
}

void ThreadTracker::add(std::uint64_t time_ns, const Wakeup& wakeup) {
  if (!wakeup.woken.tracked || is_blind(time_ns)) return;
  ThreadEntry* const thread = find_or_track(wakeup.woken, time_ns);
  if (!thread || time_ns < thread->interval.begin_ns || thread->interval.state == ThreadState::runnable) return;
  if (thread->interval.state == ThreadState::on_cpu) {
    thread->woken_early = wakeup.by;
    return;
  }
  begin_interval(*thread, time_ns, ThreadState::runnable, cpu_number(wakeup.cpu)).woken_by = wakeup.by;
}

/// Notes who is on the cpu now. False if a later switch of this cpu was seen already.
bool ThreadTracker::switch_cpu(std::uint64_t time_ns, const SchedSwitch& change) {
  RunningThread* known = recent_cpus_.find(cpus_, change.cpu);
  if (known != nullptr && time_ns < known->begin_ns) return false;
  const auto clear_elsewhere = [&](std::int32_t tid) {
    if (tid == 0) return;  // there is an idle thread on each cpu
    const auto cpu = cpu_by_tid_.find(tid);
    if (!cpu || *cpu == change.cpu) return;
    if (RunningThread& running = cpus_.at(*cpu); running.begin_ns <= time_ns) clear_cpu(*cpu, running, time_ns);
  };
  if (known == nullptr) {
    clear_elsewhere(change.prev.tid);
    clear_elsewhere(change.next.tid);
    if (cpus_.size() >= limits_.cpus) return true;
    known = &cpus_[change.cpu];
  } else {
    const RunningThread& running = *known;
    if (running.thread.tid != change.prev.tid) {
      clear_cpu(change.cpu, *known, time_ns);  // the switch in which it left is missing
    } else if (running.thread.tid != 0 && !running.left_unseen) {
      cpu_by_tid_.leave(running.thread.tid);
    }
    clear_elsewhere(change.prev.tid);
    clear_elsewhere(change.next.tid);
    if (observer_) {
      observer_->on_cpu_interval({.cpu = change.cpu,
                                  .begin_ns = running.begin_ns,
                                  .end_ns = time_ns,
                                  .first = running.thread,
                                  .last = change.prev,
                                  .gapless = running.gapless,
                                  .left_unseen = running.left_unseen});
    }
  }
  // The thread may have left already, for a cpu that it is known to be on at a later time.
  const bool is_here = change.next.tid == 0 || cpu_by_tid_.enter(change.next.tid, change.cpu);
  *known = {
      .thread = change.next, .begin_ns = time_ns, .gapless = sees_all_ || change.next.tracked, .left_unseen = !is_here};
  return true;
}

/// The thread on the cpu left it unseen.
void ThreadTracker::clear_cpu(std::uint32_t cpu, RunningThread& running, std::uint64_t time_ns) {
  if (running.thread.tid == 0 || running.left_unseen) return;
  running.left_unseen = true;
  cpu_by_tid_.leave(running.thread.tid);
  const auto found = threads_.find(running.thread.tid);
  if (found != threads_.end() && is_on(found->second.interval, cpu) && time_ns >= found->second.interval.begin_ns) {
    contradict(found->second);
    begin_interval(found->second, time_ns, ThreadState::unknown);
  }
  if (found != threads_.end()) domains_.leave_cpu(found->second.domain_thread);
  if (!observer_) return;
  const std::uint64_t left_ns = running.thread.tracked ? std::max(time_ns, running.begin_ns) : running.begin_ns;
  observer_->on_left_unseen(cpu, running, left_ns);
}

void ThreadTracker::leave(std::uint64_t time_ns, const SchedSwitch& change) {
  const bool dies = change.state == LeftState::dead;
  ThreadEntry* const thread = dies ? find(change.prev, time_ns) : find_or_track(change.prev, time_ns);
  if (!thread) return;
  domains_.learn(thread->domain_thread, change.prev);
  const bool is_known = !is_blind(time_ns);
  if (!is_known && !dies) return;
  ThreadInterval& ends = thread->interval;
  if (time_ns < ends.begin_ns) return;
  domains_.set_certainty(thread->domain_thread, change.prev.holds_lock && is_known, is_known);
  domains_.leave_cpu(thread->domain_thread);
  if (!is_on(ends, change.cpu) && ends.state != ThreadState::unknown) contradict(*thread);
  ThreadInterval& off_cpu = begin_interval(*thread, time_ns, state_after(change.state), cpu_number(change.cpu));
  off_cpu.left = change.state;
  off_cpu.syscall = change.syscall;
  if (off_cpu.state == ThreadState::runnable) off_cpu.preempted_by = change.next;
  if (dies) remove(change.prev.tid);
}

/// `has_left_since`: a later switch of the cpu was seen before this one.
void ThreadTracker::enter(std::uint64_t time_ns, const SchedSwitch& change, bool has_left_since) {
  ThreadEntry* const thread = find_or_track(change.next, time_ns);
  if (!thread) return;
  domains_.learn(thread->domain_thread, change.next);
  if (is_blind(time_ns)) {
    domains_.set_certainty(thread->domain_thread, false, false);
    return;
  }
  ThreadInterval& ends = thread->interval;
  if (time_ns < ends.begin_ns) return;
  if (is_blocked(ends.state) && thread->woken_early) {
    ends.state = ends.first_state = ThreadState::runnable;
    ends.accounted_from_ns = thread->accounted_ns;
    ends.woken_by = thread->woken_early;
  }
  if (ends.state == ThreadState::on_cpu) contradict(*thread);
  if (ends.woken_by) ends.cpu = cpu_number(change.cpu);
  thread->woken_early.reset();
  begin_interval(*thread, time_ns, ThreadState::on_cpu, cpu_number(change.cpu));
  domains_.set_certainty(thread->domain_thread, false, true);
  if (has_left_since) {
    contradict(*thread);
    begin_interval(*thread, time_ns, ThreadState::unknown);
  } else {
    domains_.enter_cpu(thread->domain_thread);
  }
}

void ThreadTracker::lose(std::uint64_t from_ns, std::uint64_t to_ns) {
  if (to_ns < from_ns) return;
  // Gaps come nearly in order of their begins: one that is over does not matter any more.
  blind_from_ns_ = from_ns > blind_until_ns_ ? from_ns : std::min(blind_from_ns_, from_ns);
  blind_until_ns_ = std::max(blind_until_ns_, to_ns);
  domains_.lose();
  for (auto& [tid, thread] : threads_) {
    domains_.lose(thread.domain_thread);
    thread.woken_early.reset();
    if (thread.interval.state == ThreadState::unknown || thread.interval.begin_ns > to_ns) continue;
    begin_interval(thread, from_ns, ThreadState::unknown);
  }
}

bool ThreadTracker::has_lost(std::int32_t tid, std::uint64_t since_ns) const {
  if (blind_until_ns_ == 0) return false;
  if (blind_until_ns_ >= since_ns) return true;
  const auto found = threads_.find(tid);
  return found != threads_.end() && found->second.interval.state == ThreadState::unknown &&
         is_blind(found->second.interval.begin_ns);
}

void ThreadTracker::forget_process(std::int32_t pid, std::uint64_t time_ns) {
  const auto process = by_pid_.find(pid);
  if (process == by_pid_.end()) return;
  const auto tids = process->second;
  for (const std::int32_t tid : tids) untrack(tid, time_ns);
}

void ThreadTracker::forget_thread(std::int32_t tid, std::uint64_t time_ns) {
  if (const auto cpu = cpu_by_tid_.find(tid)) clear_cpu(*cpu, cpus_.at(*cpu), time_ns);
  untrack(tid, time_ns);
}

void ThreadTracker::forget_domains(std::int32_t pid) {
  const auto process = by_pid_.find(pid);
  if (process == by_pid_.end()) return;
  for (const std::int32_t tid : process->second) domains_.remove(threads_.at(tid).domain_thread);
}

void ThreadTracker::finish(std::uint64_t time_ns) {
  for (auto& [tid, thread] : threads_) begin_interval(thread, time_ns, ThreadState::unknown);
  for (auto& [cpu, running] : cpus_) clear_cpu(cpu, running, time_ns);
}

ThreadTracker::Snapshot ThreadTracker::at(std::int32_t tid, std::uint64_t time_ns) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) {
    return {.tid = tid, .time_ns = time_ns, .exact = true, .since_0 = {.unknown = time_ns}};
  }
  ThreadEntry& thread = found->second;
  const bool exact = time_ns >= thread.accounted_ns;
  if (exact) {
    thread.split.add(state_of(thread.interval), time_ns - thread.accounted_ns);
    thread.accounted_ns = time_ns;
  }
  return {.tid = tid, .thread = thread.serial, .time_ns = time_ns, .exact = exact, .since_0 = thread.split};
}

TimeSplit ThreadTracker::between(const Snapshot& from, const Snapshot& to) {
  if (to.time_ns <= from.time_ns) return {};
  const bool same_thread = from.tid == to.tid && (from.thread == to.thread || from.thread == 0);
  const TimeSplit unknown{.unknown = to.time_ns - from.time_ns};
  if (!same_thread || !from.exact || !to.exact) return unknown;
  TimeSplit split;
  for (const auto part : TimeSplit::parts) {
    // If the first event of a thread was late, a time was reported as unknown in which the thread is known by now.
    if (to.since_0.*part < from.since_0.*part) return unknown;
    split.*part = to.since_0.*part - from.since_0.*part;
  }
  return split;
}

std::optional<ThreadInterval> ThreadTracker::current(std::int32_t tid, std::uint64_t time_ns) const {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return std::nullopt;
  return current(found->second, time_ns);
}

ThreadInterval ThreadTracker::current(const ThreadEntry& thread, std::uint64_t time_ns) const {
  ThreadInterval interval = thread.interval;
  interval.state = state_of(interval);
  interval.end_ns = std::max(time_ns, interval.begin_ns);
  return interval;
}

ThreadRole ThreadTracker::role(std::int32_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? ThreadRole::unknown : found->second.domain_thread.role;
}

const RunningThread* ThreadTracker::running_on(std::uint32_t cpu) const {
  const auto found = cpus_.find(cpu);
  return found == cpus_.end() ? nullptr : &found->second;
}

std::optional<std::uint32_t> ThreadTracker::cpu_of(std::int32_t tid) const {
  return cpu_by_tid_.find(tid);
}

ThreadTracker::ThreadEntry* ThreadTracker::find(std::int32_t tid) {
  return tid > 0 ? recent_.find(threads_, tid) : nullptr;  // idle threads are not tracked
}

/// The thread, if it is tracked. A tid that comes back in another process is another thread.
ThreadTracker::ThreadEntry* ThreadTracker::find(const Thread& thread, std::uint64_t time_ns) {
  ThreadEntry* const found = find(thread.tid);
  if (found == nullptr) return nullptr;
  if (found->interval.pid != thread.pid) {
    contradict(*found);
    untrack(thread.tid, time_ns);
    return nullptr;
  }
  if (thread.domain >= 0) found->interval.domain = thread.domain;
  return found;
}

ThreadTracker::ThreadEntry* ThreadTracker::find_or_track(const Thread& thread, std::uint64_t time_ns) {
  if (ThreadEntry* const known = find(thread, time_ns)) return known;
  if (thread.tid <= 0 || is_full()) return nullptr;  // a recording may hold any tid
  ThreadEntry& entry = threads_[thread.tid];
  entry = {.serial = ++last_serial_, .accounted_ns = time_ns, .split = {.unknown = time_ns}};
  entry.interval = {.pid = thread.pid, .tid = thread.tid, .domain = thread.domain, .begin_ns = time_ns};
  entry.domain_thread = {.pid = thread.pid, .tid = thread.tid};
  by_pid_[thread.pid].insert(thread.tid);
  return &entry;
}

/// A switch of a thread whose process is not traced any more: not all of its switches are in the stream from now on.
void ThreadTracker::see_untracked(std::int32_t tid, std::uint64_t time_ns) {
  const ThreadEntry* const found = find(tid);
  if (found != nullptr && time_ns >= found->interval.begin_ns) untrack(tid, time_ns);
}

void ThreadTracker::untrack(std::int32_t tid, std::uint64_t time_ns) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  begin_interval(found->second, time_ns, ThreadState::unknown);
  remove(tid);
}

/// Without switches it is unknown when a thread that was woken got a CPU.
ThreadState ThreadTracker::state_of(const ThreadInterval& interval) const {
  return interval.state == ThreadState::runnable && cpus_.empty() ? ThreadState::unknown : interval.state;
}

/// Ends the present interval and begins another, which is returned. Intervals keep to the times of events; what at()
/// has reported is final all the same.
ThreadInterval& ThreadTracker::begin_interval(ThreadEntry& thread, std::uint64_t time_ns, ThreadState state,
                                              std::int32_t cpu) {
  // In place: an interval is large, and this happens with each scheduler event.
  ThreadInterval& interval = thread.interval;
  interval.state = state_of(interval);
  interval.end_ns = std::max(time_ns, interval.begin_ns);
  if (interval.end_ns > thread.accounted_ns) {
    thread.split.add(interval.state, interval.end_ns - thread.accounted_ns);
    thread.accounted_ns = interval.end_ns;
  }
  if (observer_ && interval.end_ns > interval.begin_ns) observer_->on_thread_interval(interval);
  interval.state = interval.first_state = state;
  interval.left = LeftState::other;
  interval.syscall = Syscall::unknown;
  interval.begin_ns = std::exchange(interval.end_ns, 0);
  interval.accounted_from_ns = thread.accounted_ns;
  interval.cpu = cpu;
  interval.preempted_by.reset();
  interval.woken_by.reset();
  return interval;
}

/// The last event of the thread cannot be followed by the present one: events between are missing, and the time since
/// the last one is unknown.
void ThreadTracker::contradict(ThreadEntry& thread) {
  ++inconsistent_;
  thread.interval.state = ThreadState::unknown;
  thread.interval.accounted_from_ns = thread.accounted_ns;
  thread.interval.preempted_by.reset();
  thread.interval.woken_by.reset();
}

void ThreadTracker::remove(std::int32_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  domains_.remove(found->second.domain_thread);
  const auto process = by_pid_.find(found->second.interval.pid);
  process->second.erase(tid);
  if (process->second.empty()) by_pid_.erase(process);
  recent_.forget(tid);
  threads_.erase(found);
}

}  // namespace rtev
