// SPDX-License-Identifier: MIT
// Figures of a part of a run: what a run has counted since the part began.
#pragma once

#include <cstdint>
#include <map>

#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// For a run that is written in several files. Parts follow each other without a gap; the figures of all parts add up
/// to those of the run. The words of a part are balanced: words that were still unread at its end belong to the next
/// one. One thread.
class PeriodFigures {
 public:
  /// What a process had when a part began.
  struct ProcessBase {
    Accounting words{};
    MissedRings missed{};
    LeftAlone left_alone{};
    bool ended = false, ended_before = false;  ///< when this part began, and when the one before it began

    bool operator==(const ProcessBase&) const = default;
  };
  /// What the run had then.
  struct Base {
    std::uint64_t time_ns = 0;
    RunSummary so_far{};
    std::map<ProcessIndex, ProcessBase> processes{};
    Registry::Others others{};
  };

  /// Begins the next part. The first one begins with the run. `time_ns` is CLOCK_MONOTONIC.
  void begin(std::uint64_t time_ns, const RunSummary& so_far, const Registry& registry);
  /// The same, from figures that were kept.
  void begin(Base base);
  /// True from the second part on.
  bool has_begun() const { return !first_; }

  /// The figures of the part, given those of the run so far.
  RunSummary summary(const RunSummary& so_far) const;
  /// Names and rings of the run, and words of the part; `is_last`: with those that stay unread. Without processes that
  /// ended before the part before this one.
  Registry registry(const Registry& run, bool is_last) const;
  /// Only the processes of registry().
  struct Processes {
    std::map<ProcessIndex, ProcessInfo> list{};
    Registry::Others others{};
  };
  Processes processes(const Registry& run, bool is_last) const;

 private:
  bool first_ = true;
  Base base_;
};

}  // namespace rtev
