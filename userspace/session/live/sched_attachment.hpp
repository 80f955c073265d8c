// SPDX-License-Identifier: MIT
// When the BPF programs of the scheduler are attached.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/timed_tasks.hpp"
#include "kernel/kernel_source.hpp"

namespace rtev {

/// The programs cost each switch of the host some time, so they are attached only while traced processes live, and for
/// a few seconds after that: the next one may follow soon. Attaching and detaching waits for the kernel, so it is done
/// in the background. Times are ns of CLOCK_MONOTONIC. One thread.
class SchedAttachment {
 public:
  /// How long they stay attached after the last process, and how soon attaching is tried again.
  static constexpr std::uint64_t unused_timeout_ns = 3'000'000'000, retry_interval_ns = 16'000'000;

  /// Runs tasks one after the other on a background thread, which must end before this object.
  using RunLater = std::function<void(std::function<void()>)>;
  using AnyLives = std::function<bool()>;
  /// They are attached at first, from `now_ns` on. `any_lives`: true if a traced process lives, or if the programs are
  /// to stay attached for another reason. `tasks`: requests attaching and detaching.
  SchedAttachment(kernel::SchedPrograms& programs, RunLater run_later, AnyLives any_lives, TimedTasks& tasks,
                  std::uint64_t now_ns)
      : programs_(programs),
        run_later_(std::move(run_later)),
        any_lives_(std::move(any_lives)),
        looking_(tasks, [this](std::uint64_t look_ns) { look(look_ns); }),
        retrying_(tasks, [this](std::uint64_t retry_ns) { retry(retry_ns); }) {
    looking_.at(now_ns + unused_timeout_ns);
  }

  /// A process is tracked.
  void begin();
  /// A traced process ended.
  void end(std::uint64_t now_ns);

  /// False while switches may not be reported.
  bool is_attached() const { return state_ == State::attached; }

 private:
  /// Tasks on the background thread end `attaching` and `detaching`, look() and retry() the others.
  enum class State : std::uint8_t { attached, detaching, detached, attaching, late };
  void look(std::uint64_t now_ns);
  void attach(std::uint64_t now_ns);
  void retry(std::uint64_t now_ns);

  kernel::SchedPrograms& programs_;
  RunLater run_later_;
  AnyLives any_lives_;
  std::atomic<State> state_ = State::attached;
  TimedTask looking_;   ///< whether processes live
  TimedTask retrying_;  ///< once attaching was requested
};

}  // namespace rtev
