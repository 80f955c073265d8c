// SPDX-License-Identifier: MIT
#include "analysis/thread_time.hpp"

#include <algorithm>

namespace rtev {
namespace {

bool is_blocked(ThreadState state) {
  return state == ThreadState::sleeping || state == ThreadState::uninterruptible || state == ThreadState::stopped;
}

ThreadState state_after(LeftState left) {
  switch (left) {
    case LeftState::preempted:
      return ThreadState::runnable;
    case LeftState::sleeping:
      return ThreadState::sleeping;
    case LeftState::uninterruptible:
    case LeftState::idle:
      return ThreadState::uninterruptible;
    case LeftState::stopped:
    case LeftState::traced:
    case LeftState::dead:
    case LeftState::other:
      return ThreadState::stopped;
  }
  return ThreadState::unknown;
}

std::int32_t cpu_number(std::uint32_t cpu) {
  return static_cast<std::int32_t>(cpu & INT32_MAX);
}

bool covers(const TimeSplit& whole, const TimeSplit& part) {
  return whole.on_cpu >= part.on_cpu && whole.runnable >= part.runnable && whole.sleeping >= part.sleeping &&
         whole.uninterruptible >= part.uninterruptible && whole.stopped >= part.stopped &&
         whole.unknown >= part.unknown;
}

}  // namespace

std::string_view to_string(ThreadState state) {
  switch (state) {
    case ThreadState::unknown:
      return "unknown";
    case ThreadState::on_cpu:
      return "on-cpu";
    case ThreadState::runnable:
      return "runnable";
    case ThreadState::sleeping:
      return "sleeping";
    case ThreadState::uninterruptible:
      return "uninterruptible";
    case ThreadState::stopped:
      return "stopped";
  }
  return "unknown";
}

void TimeSplit::add(ThreadState state, std::uint64_t ns) {
  switch (state) {
    case ThreadState::unknown:
      unknown += ns;
      return;
    case ThreadState::on_cpu:
      on_cpu += ns;
      return;
    case ThreadState::runnable:
      runnable += ns;
      return;
    case ThreadState::sleeping:
      sleeping += ns;
      return;
    case ThreadState::uninterruptible:
      uninterruptible += ns;
      return;
    case ThreadState::stopped:
      stopped += ns;
      return;
  }
}

TimeSplit& TimeSplit::operator+=(const TimeSplit& other) {
  on_cpu += other.on_cpu;
  runnable += other.runnable;
  sleeping += other.sleeping;
  uninterruptible += other.uninterruptible;
  stopped += other.stopped;
  unknown += other.unknown;
  return *this;
}

void ThreadTime::add(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::sched_switch:
      if (const auto change = batch.payload_as<SchedSwitch>(event)) add(event.time, *change);
      return;
    case EventKind::wakeup:
      if (const auto wakeup = batch.payload_as<Wakeup>(event)) add(event.time, *wakeup);
      return;
    case EventKind::lost:
      if (Source::unpack(event.source).slot != 0) return;
      if (const auto loss = batch.payload_as<Loss>(event)) lose(loss->from_ns, loss->to_ns);
      return;
    case EventKind::process: {
      const auto record = batch.payload_as<ProcessRecord>(event);
      if (!record || event.id != static_cast<std::uint16_t>(ProcessAction::exit)) return;
      // One that goes on with another program keeps its threads but for those that exec ends, which die visibly.
      if (record->detail != exit_by_exec) forget(registry.process(record->process).pid, event.time);
      return;
    }
    default:
      return;
  }
}

void ThreadTime::add(std::uint64_t time_ns, const SchedSwitch& change) {
  if (is_blind(time_ns)) {
    if (change.state == LeftState::dead) leave(time_ns, change);
    return;
  }
  vacate(time_ns, change);
  if (change.prev.tracked) leave(time_ns, change);
  if (change.next.tracked) enter(time_ns, change);
}

void ThreadTime::add(std::uint64_t time_ns, const Wakeup& wakeup) {
  wakeups_seen_ = true;
  if (!wakeup.woken.tracked || is_blind(time_ns)) return;
  Followed* const thread = find_or_follow(wakeup.woken, time_ns);
  if (!thread || time_ns < thread->stretch.begin_ns || thread->stretch.state == ThreadState::runnable) return;
  if (thread->stretch.state == ThreadState::on_cpu) {
    thread->woken_early = wakeup.by;
    return;
  }
  next(*thread, time_ns, {.state = ThreadState::runnable, .cpu = cpu_number(wakeup.cpu), .woken_by = wakeup.by});
}

/// Whoever was on this cpu has left it. If that is not who leaves now, the switch in which it left is missing.
void ThreadTime::vacate(std::uint64_t time_ns, const SchedSwitch& change) {
  const auto cpu = cpus_.find(change.cpu);
  if (cpu == cpus_.end()) return;
  const auto thread = threads_.find(cpu->second);
  const bool is_here = thread != threads_.end() && thread->second.stretch.state == ThreadState::on_cpu &&
                       thread->second.stretch.cpu == cpu_number(change.cpu);
  if (is_here && time_ns < thread->second.stretch.begin_ns) return;
  cpus_.erase(cpu);
  if (!is_here || thread->first == change.prev.tid) return;
  contradict(thread->second);
  next(thread->second, time_ns, {.state = ThreadState::unknown});
}

void ThreadTime::leave(std::uint64_t time_ns, const SchedSwitch& change) {
  const bool dies = change.state == LeftState::dead;
  Followed* const thread = dies ? find(change.prev, time_ns) : find_or_follow(change.prev, time_ns);
  if (!thread || time_ns < thread->stretch.begin_ns) return;  // what came before was overtaken by later events
  const ThreadState was = thread->stretch.state;
  const bool was_here = was == ThreadState::on_cpu && thread->stretch.cpu == cpu_number(change.cpu);
  if (!was_here && was != ThreadState::unknown) contradict(*thread);
  ThreadStretch off_cpu{.state = state_after(change.state), .cpu = cpu_number(change.cpu)};
  if (off_cpu.state == ThreadState::runnable) off_cpu.taken_by = change.next;
  next(*thread, time_ns, off_cpu);
  if (dies) remove(change.prev.tid);
}

void ThreadTime::enter(std::uint64_t time_ns, const SchedSwitch& change) {
  Followed* const thread = find_or_follow(change.next, time_ns);
  if (!thread || time_ns < thread->stretch.begin_ns) return;
  ThreadStretch& ends = thread->stretch;
  if (is_blocked(ends.state) && thread->woken_early) {
    ends.state = ThreadState::runnable;
    ends.told_from_ns = thread->settled_ns;
    ends.woken_by = thread->woken_early;
  }
  if (ends.state == ThreadState::on_cpu || (is_blocked(ends.state) && wakeups_seen_)) contradict(*thread);
  if (ends.state == ThreadState::runnable) ends.followed = change.prev;
  thread->woken_early.reset();
  next(*thread, time_ns, {.state = ThreadState::on_cpu, .cpu = cpu_number(change.cpu)});
  cpus_[change.cpu] = change.next.tid;
}

void ThreadTime::lose(std::uint64_t from_ns, std::uint64_t to_ns) {
  if (to_ns < from_ns) return;
  // Gaps come nearly in order of their begins: one that is over is not asked for any more.
  blind_from_ns_ = from_ns > blind_until_ns_ ? from_ns : std::min(blind_from_ns_, from_ns);
  blind_until_ns_ = std::max(blind_until_ns_, to_ns);
  for (auto& [tid, thread] : threads_) {
    thread.woken_early.reset();
    if (thread.stretch.state == ThreadState::unknown || thread.stretch.begin_ns > to_ns) continue;
    next(thread, from_ns, {.state = ThreadState::unknown});
  }
  std::erase_if(cpus_, [&](const auto& cpu) {
    const auto thread = threads_.find(cpu.second);
    return thread == threads_.end() || thread->second.stretch.state != ThreadState::on_cpu;
  });
}

void ThreadTime::forget(std::int32_t pid, std::uint64_t time_ns) {
  const auto process = by_pid_.find(pid);
  if (process == by_pid_.end()) return;
  const std::vector<std::int32_t> tids = process->second;
  for (const std::int32_t tid : tids) {
    next(threads_.at(tid), time_ns, {.state = ThreadState::unknown});
    remove(tid);
  }
}

ThreadTime::Snapshot ThreadTime::at(std::int32_t tid, std::uint64_t time_ns) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) {
    return {.tid = tid, .time_ns = time_ns, .exact = true, .since_0 = {.unknown = time_ns}};
  }
  Followed& thread = found->second;
  const bool exact = time_ns >= thread.settled_ns;
  if (exact) {
    thread.split.add(thread.stretch.state, time_ns - thread.settled_ns);
    thread.settled_ns = time_ns;
  }
  return {.tid = tid, .thread = thread.serial, .time_ns = time_ns, .exact = exact, .since_0 = thread.split};
}

TimeSplit ThreadTime::between(const Snapshot& from, const Snapshot& to) {
  if (to.time_ns <= from.time_ns) return {};
  const bool same_thread = from.tid == to.tid && (from.thread == to.thread || from.thread == 0);
  // A thread whose first event came late was taken for unknown at a time when it was known.
  if (!same_thread || !from.exact || !to.exact || !covers(to.since_0, from.since_0)) {
    return {.unknown = to.time_ns - from.time_ns};
  }
  return {.on_cpu = to.since_0.on_cpu - from.since_0.on_cpu,
          .runnable = to.since_0.runnable - from.since_0.runnable,
          .sleeping = to.since_0.sleeping - from.since_0.sleeping,
          .uninterruptible = to.since_0.uninterruptible - from.since_0.uninterruptible,
          .stopped = to.since_0.stopped - from.since_0.stopped,
          .unknown = to.since_0.unknown - from.since_0.unknown};
}

std::optional<ThreadStretch> ThreadTime::current(std::int32_t tid, std::uint64_t time_ns) const {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return std::nullopt;
  ThreadStretch stretch = found->second.stretch;
  stretch.end_ns = std::max(time_ns, stretch.begin_ns);
  return stretch;
}

/// The thread, if it is followed; brings what is known of it up to date. A tid that comes back in another process is
/// another thread.
ThreadTime::Followed* ThreadTime::find(const Thread& thread, std::uint64_t time_ns) {
  const auto found = threads_.find(thread.tid);
  if (found == threads_.end()) return nullptr;
  if (found->second.stretch.pid != thread.pid) {
    contradict(found->second);
    next(found->second, time_ns, {.state = ThreadState::unknown});
    remove(thread.tid);
    return nullptr;
  }
  if (thread.domain >= 0) found->second.stretch.domain = thread.domain;
  return &found->second;
}

ThreadTime::Followed* ThreadTime::find_or_follow(const Thread& thread, std::uint64_t time_ns) {
  if (Followed* const known = find(thread, time_ns)) return known;
  if (threads_.size() >= limits_.threads) return nullptr;
  Followed& followed = threads_[thread.tid];
  followed = {.serial = ++last_serial_, .settled_ns = time_ns, .split = {.unknown = time_ns}};
  followed.stretch = {.pid = thread.pid, .tid = thread.tid, .domain = thread.domain, .begin_ns = time_ns};
  by_pid_[thread.pid].push_back(thread.tid);
  return &followed;
}

/// Ends the stretch and begins another. Stretches keep to the times of events; what at() has told stands all the same.
void ThreadTime::next(Followed& thread, std::uint64_t time_ns, ThreadStretch begun) {
  ThreadStretch& ends = thread.stretch;
  ends.end_ns = std::max(time_ns, ends.begin_ns);
  if (ends.end_ns > thread.settled_ns) {
    thread.split.add(ends.state, ends.end_ns - thread.settled_ns);
    thread.settled_ns = ends.end_ns;
  }
  if (observer_ && ends.end_ns > ends.begin_ns) observer_(ends);
  begun.pid = ends.pid;
  begun.tid = ends.tid;
  begun.domain = ends.domain;
  begun.begin_ns = ends.end_ns;
  begun.told_from_ns = thread.settled_ns;
  ends = begun;
}

/// What was seen last cannot be followed by what is seen now: events between are missing, so that all since the last
/// one is unknown.
void ThreadTime::contradict(Followed& thread) {
  ++contradictions_;
  thread.stretch.state = ThreadState::unknown;
  thread.stretch.told_from_ns = thread.settled_ns;
  thread.stretch.cpu = -1;
  thread.stretch.taken_by.reset();
  thread.stretch.woken_by.reset();
}

void ThreadTime::remove(std::int32_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  const auto process = by_pid_.find(found->second.stretch.pid);
  std::erase(process->second, tid);
  if (process->second.empty()) by_pid_.erase(process);
  threads_.erase(found);
}

}  // namespace rtev
