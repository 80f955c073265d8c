// SPDX-License-Identifier: MIT
// Looks at the main threads of processes again and again: what is left of scheduler events without rights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/timed_tasks.hpp"
#include "base/unique_fd.hpp"
#include "session/rootless/sampled_thread.hpp"

namespace rtev {

/// One thread.
class ThreadSampler {
 public:
  /// Takes the records of the thread `index`: those of a thread come in order of time, not later than its next sample
  /// after that time. An index is less than max_threads, and that of no other thread at the same time.
  using Emit = std::function<void(std::uint16_t index, std::uint64_t time_ns, const SchedSwitch& change)>;

  static constexpr std::uint64_t interval_ns = 10'000'000;
  static constexpr std::size_t max_threads = 128;

  using Clock = std::function<std::uint64_t()>;

  /// `tasks`: takes the samples. `clock`: for tests.
  ThreadSampler(TimedTasks& tasks, Emit emit, std::filesystem::path proc = "/proc", Clock clock = monotonic_ns)
      : emit_(std::move(emit)),
        proc_(std::move(proc)),
        clock_(std::move(clock)),
        sampling_(tasks, [this](std::uint64_t now_ns) { sample(now_ns); }) {}

  /// Only main threads are sampled: which other threads run domains is unknown without rights. Processes beyond
  /// max_threads are left out.
  void add(std::int32_t pid);
  void remove(std::int32_t pid) { threads_.erase(pid); }
  /// Takes a sample of each, besides those that are due.
  void sample(std::uint64_t now_ns);

 private:
  struct Watched {
    std::uint16_t index;
    SampledThread thread;
    UniqueFd schedstat, status, syscall;
  };

  bool look(Watched& watched);

  Emit emit_;
  std::filesystem::path proc_;
  Clock clock_;
  std::map<std::int32_t, Watched> threads_;
  TimedTask sampling_;
};

}  // namespace rtev
