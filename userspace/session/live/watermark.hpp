// SPDX-License-Identifier: MIT
// Up to which time the stream is complete.
#pragma once

#include <cstdint>
#include <optional>

namespace rtev {

/// Computes the watermark: events up to this time are delivered, since no earlier ones are expected. All times are ns
/// of CLOCK_MONOTONIC.
class Watermark {
 public:
  /// Reasons to hold events back: since when, if at all.
  struct Holds {
    /// A thread has been off its cpu against its will since then. It may have an event whose time it has read and which
    /// it has not published.
    std::optional<std::uint64_t> interrupted_since{};
    /// A ring has been announced and is not open yet.
    std::optional<std::uint64_t> unopened_since{};
    /// A source could not be read to its end.
    std::optional<std::uint64_t> behind_since{};
    /// Events cannot be named or attributed yet: their program is being inspected, or their process not known.
    std::optional<std::uint64_t> unattributed_since{};
  };

  /// Without scheduler events nobody reports interrupted threads, so that all events are held back for longer.
  explicit Watermark(bool has_sched) : slack_ns_(has_sched ? sched_slack_ns : blind_slack_ns) {}

  /// Sources have been read up to `read_until_ns`. Holds are not respected for ever: threads hold events
  /// back for 65 ms, sources that are behind for 20 ms, events without a process for 1 s.
  std::uint64_t at(std::uint64_t read_until_ns, const Holds& holds) const;
  /// Threads that were interrupted before this do not hold back events.
  static std::uint64_t oldest_interruption(std::uint64_t read_until_ns) { return read_until_ns - max_slack_ns; }
  /// How long events are held back at least.
  std::uint64_t slack_ns() const { return slack_ns_; }

 private:
  /// Between reading an event's time and publishing it a running thread does little.
  static constexpr std::uint64_t sched_slack_ns = 500'000;
  static constexpr std::uint64_t blind_slack_ns = 40'000'000;
  /// The longest that interrupted threads may hold back events. With what look-ups take (max_hold_ns of
  /// LifecycleReader) less than 100 ms.
  static constexpr std::uint64_t max_slack_ns = 65'000'000;
  /// The longest that a source which is behind may hold back the others.
  static constexpr std::uint64_t max_behind_ns = 20'000'000;
  /// The longest that events may be held back which cannot be named or attributed.
  static constexpr std::uint64_t max_hold_ns = 1'000'000'000;

  std::uint64_t slack_ns_;
};

}  // namespace rtev
