// SPDX-License-Identifier: MIT
// When a ring has to be looked at again.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel/kernel_source.hpp"

namespace rtev {

/// The pace of one ring. It is looked at as often as the output wants its events, or more often, so that its writer
/// cannot fill it between two looks. BPF reports when a part of a ring is filled, so a ring that is large enough may be
/// left alone until then, whatever its writer does. A ring whose process does not run is not looked at. All times are
/// ns of CLOCK_MONOTONIC. One thread.
class RingPace {
 public:
  /// `max_delay_ns`: how old events may be when they are read.
  RingPace(std::uint64_t ring_words, std::uint64_t max_delay_ns);

  /// Takes what is known of the ring since the last call.
  void note(std::uint64_t now_ns, const kernel::RingActivity& activity);
  bool is_due(std::uint64_t now_ns) const { return due_ns_ && *due_ns_ <= now_ns; }
  /// At least half of the usual time between two reads has passed.
  bool is_nearly_due(std::uint64_t now_ns) const { return due_ns_ && now_ns >= read_ns_ + interval_ns_ / 2; }
  /// When the next look is due; nothing if the process does not run.
  std::optional<std::uint64_t> due_ns() const { return due_ns_; }

  /// The ring was read, `elapsed_ns` after the last time. `fullest`: the largest share of a domain's ring that was
  /// unread.
  void was_read(std::uint64_t now_ns, std::uint64_t elapsed_ns, double fullest);
  /// The ring cannot be read before this time, or has to be read again then.
  void postpone(std::uint64_t until_ns) { due_ns_ = until_ns; }
  /// The process did not run since the ring was read.
  void rest() { due_ns_.reset(); }

 private:
  std::uint64_t longest_ns(bool is_burst) const;

  std::uint64_t max_delay_ns_;
  std::uint64_t fill_ns_;      ///< what the fastest writer takes to fill the ring
  std::uint64_t shortest_ns_;  ///< between two looks
  bool is_large_;              ///< BPF looks at it before it can be full
  bool checked_ = false;       ///< BPF looks at it
  std::optional<std::uint64_t> unchecked_since_ns_{};
  std::uint64_t read_ns_ = 0, interval_ns_ = 0;  ///< the last read, and how often the ring is to be read since then
  double rate_ = 0;                              ///< at the last read: share of the ring that was filled in a ns
  std::optional<std::uint64_t> due_ns_{};
};

}  // namespace rtev
