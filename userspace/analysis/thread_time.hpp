// SPDX-License-Identifier: MIT
// What threads did over time, from switches and wakeups: on a cpu, waiting for one, blocked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rtev/event.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"

namespace rtev {

enum class ThreadState : std::uint8_t {
  unknown,  ///< before its first scheduler event, or where events are missing
  on_cpu,
  runnable,         ///< could run, but another thread had the cpu
  sleeping,         ///< blocked until woken, a signal included
  uninterruptible,  ///< blocked in the kernel, on a disk as a rule
  stopped,          ///< blocked otherwise: stopped by a signal or a debugger
};
std::string_view to_string(ThreadState state);

/// A length of time by what a thread did in it, in ns.
struct TimeSplit {
  std::uint64_t on_cpu = 0;
  std::uint64_t runnable = 0;
  std::uint64_t sleeping = 0;
  std::uint64_t uninterruptible = 0;
  std::uint64_t stopped = 0;
  std::uint64_t unknown = 0;

  std::uint64_t blocked() const { return sleeping + uninterruptible + stopped; }
  std::uint64_t total() const { return on_cpu + runnable + blocked() + unknown; }
  void add(ThreadState state, std::uint64_t ns);
  TimeSplit& operator+=(const TimeSplit& other);
  bool operator==(const TimeSplit&) const = default;
};

/// A stretch of time in which a thread was in one state. Threads are described as of the event that tells.
struct ThreadStretch {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::int32_t domain = -1;  ///< OCaml domain of the thread, -1 where not known
  ThreadState state = ThreadState::unknown;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;  ///< of the stretch that lasts still: the time asked for
  /// From when on ThreadTime::at() tells this state, if that is later than begin_ns: what it told of before stands.
  std::uint64_t told_from_ns = 0;
  /// On which it ran, or which it left last; -1 where not known.
  std::int32_t cpu = -1;
  std::optional<Thread> taken_by{};  ///< runnable since it was preempted: who got the cpu
  std::optional<Thread> woken_by{};  ///< runnable since it was woken: by whom
  std::optional<Thread> followed{};  ///< runnable and then on a cpu: who had that cpu before it
};

/// A fold over the scheduler events of the stream, for threads of traced processes. Time that scheduler events do not
/// account for (none seen yet, or ones that contradict each other since some were dropped) is unknown; where no wakeup
/// is ever seen (they are not traced), a thread is blocked until it runs again. Memory is bounded. One thread.
class ThreadTime {
 public:
  struct Limits {
    std::size_t threads = std::size_t{1} << 17;  ///< followed at once; of what is beyond nothing is known
  };
  ThreadTime() : ThreadTime(Limits{}) {}
  explicit ThreadTime(Limits limits) : limits_(limits) {}

  /// Called with each stretch when it ends, those of unknown state included. Not from within itself.
  void on_stretch(std::function<void(const ThreadStretch&)> observer) { observer_ = std::move(observer); }

  /// Takes what concerns it of any event: switches, wakeups, losses of kernel buffers (EventKind::lost of slot 0),
  /// ends of processes.
  void add(const Event& event, const Batch& batch, const Registry& registry);
  void add(std::uint64_t time_ns, const SchedSwitch& change);
  void add(std::uint64_t time_ns, const Wakeup& wakeup);
  /// Scheduler events from the first of these times to the last may be missing. What threads do then is not known,
  /// whatever else is seen of them; nor what they do afterwards, up to the next event of theirs.
  void lose(std::uint64_t from_ns, std::uint64_t to_ns);
  /// A process that ended, or goes on with another program.
  void forget(std::int32_t pid, std::uint64_t time_ns);

  /// What a thread did since time 0, as of a moment.
  struct Snapshot {
    std::int32_t tid = 0;
    std::uint64_t thread = 0;  ///< tells threads of the same tid apart; 0: never seen
    std::uint64_t time_ns = 0;
    bool exact = false;  ///< false: the moment was before what is known already
    TimeSplit since_0{};
  };
  /// As of `time_ns`, which is to be the present of the stream. What is told for the time before it stands: scheduler
  /// events that come late change only what comes after.
  Snapshot at(std::int32_t tid, std::uint64_t time_ns);
  /// What the thread did between two snapshots. Its total() is the time between them, always; unknown where they are
  /// not of the same thread. Nothing if `to` is before `from`.
  static TimeSplit between(const Snapshot& from, const Snapshot& to);

  /// The stretch that lasts at `time_ns`; nothing for a thread that was not seen.
  std::optional<ThreadStretch> current(std::int32_t tid, std::uint64_t time_ns) const;

  std::size_t size() const { return threads_.size(); }
  /// Switches that contradict what was seen before: events between them are missing.
  std::uint64_t contradictions() const { return contradictions_; }

 private:
  struct Followed {
    std::uint64_t serial = 0;
    std::uint64_t settled_ns = 0;  ///< what is before is in `split` and stands
    TimeSplit split{};             ///< since time 0
    ThreadStretch stretch{};       ///< that lasts
    /// Who woke it when it had decided to sleep and was still on its way off the cpu: it never blocks then.
    std::optional<Thread> woken_early{};
  };

  bool is_blind(std::uint64_t time_ns) const {
    return blind_until_ns_ != 0 && time_ns >= blind_from_ns_ && time_ns <= blind_until_ns_;
  }
  Followed* find(const Thread& thread, std::uint64_t time_ns);
  Followed* find_or_follow(const Thread& thread, std::uint64_t time_ns);
  void vacate(std::uint64_t time_ns, const SchedSwitch& change);
  void leave(std::uint64_t time_ns, const SchedSwitch& change);
  void enter(std::uint64_t time_ns, const SchedSwitch& change);
  void next(Followed& thread, std::uint64_t time_ns, ThreadStretch begun);
  void contradict(Followed& thread);
  void remove(std::int32_t tid);

  Limits limits_;
  std::unordered_map<std::int32_t, Followed> threads_;                  ///< by tid
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> by_pid_;  ///< tids
  std::unordered_map<std::uint32_t, std::int32_t> cpus_;                ///< which thread of threads_ is on it
  std::function<void(const ThreadStretch&)> observer_;
  std::uint64_t last_serial_ = 0;
  std::uint64_t contradictions_ = 0;
  bool wakeups_seen_ = false;
  std::uint64_t blind_from_ns_ = 0;  ///< in this time events may be missing: those that are there prove nothing
  std::uint64_t blind_until_ns_ = 0;
};

}  // namespace rtev
