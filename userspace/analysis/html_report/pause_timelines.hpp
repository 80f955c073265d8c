// SPDX-License-Identifier: MIT
// What all domains of a process did around its longest pauses: phases, states of threads, samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/pause_finder.hpp"
#include "analysis/pauses/pause_details.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// The surroundings of a pause, or of several that overlap. Times are CLOCK_MONOTONIC in ns.
struct PauseTimeline {
  struct Phase {
    std::uint64_t begin_ns = 0, end_ns = 0;
    ProcessIndex process = 0;
    std::uint16_t domain = 0, phase = 0, depth = 0;
  };
  struct State {
    std::uint64_t begin_ns = 0, end_ns = 0;
    std::int32_t pid = 0, tid = 0, domain = -1, cpu = -1;
    ThreadState state = ThreadState::unknown;
    bool is_woken = false;       ///< runnable after a wakeup by `by`; else `by` has preempted it
    std::optional<Thread> by{};  ///< of a runnable thread, as far as known
  };
  struct StackSample {
    std::uint64_t end_ns = 0;
    std::int32_t pid = 0, tid = 0, domain = -1;
    SampleKind kind{};
    StackIndex stack = 0;
  };

  ProcessIndex process = 0;
  std::int32_t pid = 0;
  Family family = Family::since_5_3;
  std::uint64_t begin_ns = 0, end_ns = 0;  ///< with some time before and after the pause
  std::uint64_t pause_ns = 0;              ///< of the longest one
  bool is_cut = false;                     ///< what is drawn was limited, or its begin was forgotten
  std::vector<Phase> phases{};             ///< by their ends
  std::vector<State> states{};
  std::vector<StackSample> samples{};

  bool covers(ProcessIndex of, std::uint64_t time_ns) const {
    return process == of && time_ns >= begin_ns && time_ns <= end_ns;
  }
};

/// All spans of a phase.
struct PhaseTotal {
  std::uint64_t count = 0, longest_ns = 0, total_ns = 0;
  std::uint64_t own_ns = 0;  ///< without the phases inside
};

/// Remembers the recent past of all processes, and keeps what was around the longest pauses. A fold over the stream.
/// Memory is bounded. One thread.
class PauseTimelines final : private PauseListener, private ThreadObserver {
 public:
  static constexpr std::size_t max_timelines = 24;
  static constexpr std::size_t max_phases = 2000, max_states = 2000, max_samples = 1000;  ///< of a timeline

  /// `max_bytes`: of the recent past.
  explicit PauseTimelines(std::size_t max_bytes);

  void add(const Event& event, const Batch& batch, const Registry& registry);
  /// A pause at its end. Its surroundings may still lie in the future of the stream.
  void add(const PauseDetails& pause);
  /// At the end of the stream.
  void finish(std::uint64_t time_ns);

  /// The timeline that shows a time of a process best; null if there is none.
  const PauseTimeline* find(ProcessIndex process, std::uint64_t time_ns) const;

  using PhaseKey = std::pair<Family, std::uint16_t>;
  /// Of all domains, of the phases that ended. Ids that no runtime has are left out.
  const std::map<PhaseKey, PhaseTotal>& phase_totals() const { return totals_; }

 private:
  struct Open {
    std::uint64_t begin_ns = 0;
    std::uint64_t inside_ns = 0;  ///< of the phases directly inside
    std::uint16_t phase = 0;
  };
  struct Domain {
    DomainLife life{};
    std::vector<Open> open{};  ///< outermost first
  };

  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override;
  void on_phase_end(const DomainLife& domain, const PhaseEnd& phase) override { close(domain, phase, true); }
  void on_phase_dropped(const DomainLife& domain, const PhaseEnd& phase, Unfinished /*reason*/) override {
    close(domain, phase, false);
  }
  void on_domain_end(const DomainLife& domain, std::uint64_t /*time_ns*/) override { domains_.erase(domain.key()); }
  void on_thread_interval(const ThreadInterval& interval) override;

  void close(const DomainLife& life, const PhaseEnd& phase, bool ended);
  static PauseTimeline::State state_of(const ThreadInterval& interval);
  void pass(std::uint64_t time_ns);
  void capture(PauseTimeline timeline, std::uint64_t now_ns);
  void add_present(PauseTimeline& timeline, std::uint64_t now_ns) const;
  void keep(PauseTimeline timeline);

  std::size_t max_past_phases_, max_past_states_, max_past_samples_;
  PauseFinder finder_{*this};
  ThreadTracker threads_{this};
  std::map<std::uint64_t, Domain> domains_;  ///< by DomainLife::key()
  std::map<PhaseKey, PhaseTotal> totals_;
  // By their ends, as far as the events were in order.
  std::deque<PauseTimeline::Phase> phases_;
  std::deque<PauseTimeline::State> states_;
  std::deque<PauseTimeline::StackSample> samples_;
  std::uint64_t forgotten_ns_ = 0;        ///< what ended before may be missing above
  std::vector<PauseTimeline> waiting_;    ///< for their ends
  std::uint64_t next_ns_ = UINT64_MAX;    ///< the first of these ends
  std::vector<PauseTimeline> timelines_;  ///< the longest pause first
};

}  // namespace rtev
