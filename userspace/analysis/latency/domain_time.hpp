// SPDX-License-Identifier: MIT
// What a domain did over a time: the times of its threads, of each while it ran the domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "rtev/event.hpp"
#include "stream/registry.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// A fold over the scheduler events of the stream. Measures times that its user starts and stops. If the thread that
/// runs the domain changes meanwhile, each part is that of the thread which ran it then. One thread.
class DomainTime {
 public:
  /// A running measurement.
  struct Meter {
    std::int32_t pid = 0;
    std::uint64_t number = 0;  ///< 0: all of the time is unknown
    std::uint64_t start_ns = 0;
  };
  /// The limit of measurements of one process that run at the same time: when a thread of the process enters or leaves
  /// a cpu, all of them are visited. OCaml's default maximum of domains.
  static constexpr std::size_t max_running = 128;

  /// `observer` of the threads, if any, must outlive it.
  explicit DomainTime(ThreadObserver* observer = nullptr) : threads_(observer) {}

  /// Uses scheduler events, their losses and ends of images; ignores all other events.
  void add(const Event& event, const Batch& batch, const Registry& registry);

  Meter start(std::int32_t pid, std::uint16_t domain, std::uint64_t time_ns);
  /// What the domain did since start(). Its total() is always that time; it is unknown if times went back meanwhile.
  /// Nothing for a meter that was stopped before.
  TimeSplit stop(Meter meter, std::uint64_t time_ns);

  /// The thread that writes the domain's ring, if that is known.
  std::optional<std::int32_t> writer_of(std::int32_t pid, std::uint16_t domain) const {
    return threads_.writer_of(pid, domain);
  }
  /// Running measurements.
  std::size_t running() const;
  /// False until a switch was seen: all time is unknown.
  bool switches_seen() const { return switches_seen_; }
  std::uint64_t inconsistent_switches() const { return threads_.inconsistent_switches(); }

 private:
  struct Running {
    std::uint16_t domain;
    std::optional<std::int32_t> tid;
    ThreadTracker::Snapshot since;  ///< of that thread
    TimeSplit before;               ///< of the threads that ran the domain before it
  };

  ThreadTracker::Snapshot snapshot(std::optional<std::int32_t> tid, std::uint64_t time_ns);
  void change_threads(std::int32_t pid, std::uint64_t time_ns);

  ThreadTracker threads_;
  std::unordered_map<std::int32_t, std::map<std::uint64_t, Running>> running_;  ///< by pid and number
  std::uint64_t last_number_ = 0;
  bool switches_seen_ = false;
};

}  // namespace rtev
