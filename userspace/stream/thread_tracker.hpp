// SPDX-License-Identifier: MIT
// Which thread is on which cpu, and what threads do over time: on a cpu, waiting for one, blocked; which thread runs
// which OCaml domain.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/recent_entries.hpp"
#include "rtev/event.hpp"
#include "stream/cpus_of_threads.hpp"
#include "stream/domain_threads.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// Called by a ThreadTracker in the order of the stream, from within its add(), lose(), forget_...() and finish(). All
/// functions do nothing unless overridden.
class ThreadObserver {
 public:
  virtual ~ThreadObserver() = default;
  /// A thread of a traced process changed its state, or is forgotten. Intervals of unknown state are included, empty
  /// ones are not; those of a thread do not overlap.
  virtual void on_thread_interval(const ThreadInterval& /*interval*/) {}
  /// A switch of this cpu was seen. Called before the intervals of the two threads.
  virtual void on_cpu_interval(const CpuInterval& /*interval*/) {}
  /// A thread was on a cpu and it turns out that it left unseen: at `time_ns` at the latest if it is traced. Of other
  /// threads not all switches are in the stream: all that is known is that it was there at its begin, and that is
  /// `time_ns`. Called after the end of its interval.
  virtual void on_left_unseen(std::uint32_t /*cpu*/, const RunningThread& /*thread*/, std::uint64_t /*time_ns*/) {}
};

/// A fold over the scheduler events of the stream. Intervals, times and domains are known for threads of traced
/// processes; who is on a cpu for all threads, as far as their switches are in the stream. Time that scheduler events
/// do not account for (none seen yet, or inconsistent ones as some were dropped) is unknown; where no wakeup is seen, a
/// thread is blocked until it runs again. An event that is older than the last one of its thread changes nothing.
/// Memory is bounded. One thread.
class ThreadTracker {
 public:
  struct Limits {
    std::size_t threads = std::size_t{1} << 17;  ///< tracked at once; further ones are unknown
    std::size_t cpus = std::size_t{1} << 16;
  };
  explicit ThreadTracker(ThreadObserver* observer = nullptr) : ThreadTracker(observer, Limits{}) {}
  ThreadTracker(ThreadObserver* observer, Limits limits) : limits_(limits), observer_(observer) {}
  ThreadTracker(const ThreadTracker&) = delete;
  ThreadTracker& operator=(const ThreadTracker&) = delete;
  ~ThreadTracker();

  /// Uses switches, wakeups, losses of kernel buffers (EventKind::lost of slot 0) and ends of images; ignores all other
  /// events.
  void add(const Event& event, const Batch& batch, const Registry& registry);
  void add(std::uint64_t time_ns, const SchedSwitch& change);
  void add(std::uint64_t time_ns, const Wakeup& wakeup);
  /// Scheduler events from the first of these times to the last may be missing. The states of threads are unknown then,
  /// whatever events of theirs are seen; and afterwards, until the next event of the thread.
  void lose(std::uint64_t from_ns, std::uint64_t to_ns);
  /// Whether that is so of a thread at some time since `since_ns`.
  bool has_lost(std::int32_t tid, std::uint64_t since_ns) const;
  void forget_process(std::int32_t pid, std::uint64_t time_ns);
  void forget_thread(std::int32_t tid, std::uint64_t time_ns);
  /// A process ended or goes on with another program, but its threads go on for now: which domains they run is unknown.
  void forget_domains(std::int32_t pid);
  /// At the end of the stream, for observers that want every interval.
  void finish(std::uint64_t time_ns);

  /// The times of a thread since time 0, as of a moment.
  struct Snapshot {
    std::int32_t tid = 0;
    std::uint64_t thread = 0;  ///< distinguishes threads of the same tid; 0: never seen
    std::uint64_t time_ns = 0;
    bool exact = false;  ///< false: the moment was before what is known already
    TimeSplit since_0{};
  };
  /// As of `time_ns`, which should be the present of the stream. What is reported of the time before is final:
  /// scheduler events that come late change only what comes after.
  Snapshot at(std::int32_t tid, std::uint64_t time_ns);
  /// What the thread did between two snapshots. Its total() is the time between them, always; unknown if they are not
  /// of the same thread. Nothing if `to` is before `from`.
  static TimeSplit between(const Snapshot& from, const Snapshot& to);

  /// The present interval of a thread, up to `time_ns`; nothing for a thread that was not seen.
  std::optional<ThreadInterval> current(std::int32_t tid, std::uint64_t time_ns) const;
  ThreadRole role(std::int32_t tid) const;

  /// Calls visit(const ThreadInterval&) with the present interval of every thread, up to `time_ns`.
  template <typename Visitor>
  void each_current(std::uint64_t time_ns, Visitor&& visit) const {
    for (const auto& [tid, thread] : threads_) visit(current(thread, time_ns));
  }
  /// Null before the first switch of the cpu. Valid until the next call of a non-const function.
  const RunningThread* running_on(std::uint32_t cpu) const;
  /// Calls visit(cpu, const RunningThread&) for every cpu.
  template <typename Visitor>
  void each_cpu(Visitor&& visit) const {
    for (const auto& [cpu, thread] : cpus_) visit(cpu, thread);
  }
  /// The cpu that a thread is on; nothing if it is on none, as far as known.
  std::optional<std::uint32_t> cpu_of(std::int32_t tid) const;
  /// A switch was seen that concerns no traced thread: the stream has all switches (--sched all).
  bool sees_all() const { return sees_all_; }

  /// The thread that writes this domain's ring now, as far as that is known: of the domain's threads the one that left
  /// its cpu with the domain's lock; otherwise the one on a cpu, a mutator rather than the backup thread; if none is on
  /// a cpu, the last one that was. For a domain without known threads the only thread on a cpu whose domain is unknown.
  /// Otherwise domain 0 runs on the main thread, as in every program that OCaml starts. Nothing if switches are missing
  /// and it may be another thread by now.
  std::optional<std::int32_t> writer_of(std::int32_t pid, std::uint16_t domain) const {
    return domains_.writer_of(pid, domain);
  }
  /// The same, but never the backup thread: outside of pauses it only waits for the next one.
  std::optional<std::int32_t> mutator_of(std::int32_t pid, std::uint16_t domain) const {
    return domains_.mutator_of(pid, domain);
  }
  /// Changes whenever an answer of writer_of() may have changed.
  std::uint64_t writers_version() const { return domains_.version(); }

  /// Threads tracked.
  std::size_t size() const { return threads_.size(); }
  bool is_full() const { return threads_.size() >= limits_.threads; }
  /// Switches that contradict the ones before: events between them are missing.
  std::uint64_t inconsistent_switches() const { return inconsistent_; }

 private:
  struct ThreadEntry {
    std::uint64_t serial = 0;
    std::uint64_t accounted_ns = 0;  ///< the time before is in `split` and final
    TimeSplit split{};               ///< since time 0
    ThreadInterval interval{};       ///< the present one
    /// Who woke it between its decision to sleep and its leaving the cpu: it does not block then.
    std::optional<Thread> woken_early{};
    DomainThread domain_thread{};
  };

  bool is_blind(std::uint64_t time_ns) const {
    return blind_until_ns_ != 0 && time_ns >= blind_from_ns_ && time_ns <= blind_until_ns_;
  }
  ThreadInterval current(const ThreadEntry& thread, std::uint64_t time_ns) const;
  ThreadState state_of(const ThreadInterval& interval) const;
  bool switch_cpu(std::uint64_t time_ns, const SchedSwitch& change);
  void clear_cpu(std::uint32_t cpu, RunningThread& running, std::uint64_t time_ns);
  void leave(std::uint64_t time_ns, const SchedSwitch& change);
  void enter(std::uint64_t time_ns, const SchedSwitch& change, bool has_left_since);
  ThreadEntry* find(std::int32_t tid);
  ThreadEntry* find(const Thread& thread, std::uint64_t time_ns);
  ThreadEntry* find_or_track(const Thread& thread, std::uint64_t time_ns);
  void see_untracked(std::int32_t tid, std::uint64_t time_ns);
  void untrack(std::int32_t tid, std::uint64_t time_ns);
  ThreadInterval& begin_interval(ThreadEntry& thread, std::uint64_t time_ns, ThreadState state, std::int32_t cpu = -1);
  void contradict(ThreadEntry& thread);
  void remove(std::int32_t tid);

  Limits limits_;
  ThreadObserver* observer_;
  std::unordered_map<std::int32_t, ThreadEntry> threads_;  ///< by tid; of traced processes
  RecentEntries<ThreadEntry> recent_;
  std::unordered_map<std::int32_t, std::unordered_set<std::int32_t>> by_pid_;  ///< tids
  std::unordered_map<std::uint32_t, RunningThread> cpus_;
  RecentEntries<RunningThread> recent_cpus_;
  CpusOfThreads cpu_by_tid_;  ///< of the threads in cpus_ that have not left unseen
  DomainThreads domains_;
  std::uint64_t last_serial_ = 0;
  std::uint64_t inconsistent_ = 0;
  bool sees_all_ = false;
  std::uint64_t blind_from_ns_ = 0;  ///< events may be missing in this time: those that are there prove nothing
  std::uint64_t blind_until_ns_ = 0;
};

}  // namespace rtev
