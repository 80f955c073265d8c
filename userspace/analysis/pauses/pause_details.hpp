// SPDX-License-Identifier: MIT
// The details of one pause: what it was spent on, and what it waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/pause_finder.hpp"
#include "analysis/pauses/phase_tree.hpp"
#include "analysis/pauses/stop_the_world.hpp"
#include "analysis/pauses/thread_history.hpp"

namespace rtev {

/// Scheduling of a thread during a pause, besides the sums of times. Memory is bounded.
class SchedulingDetail {
 public:
  static constexpr std::size_t max_competitors = 16, max_wakers = 8;

  /// A thread that had the cpu which the thread of the pause waited for.
  struct CpuCompetitor {
    CpuWait wait;  ///< ns: all its waits together
    std::uint64_t times = 0;
    std::vector<SeenStack> stacks{};  ///< of the thread in the pause, if stacks are sampled
  };
  struct Waker {
    Thread thread{};
    std::uint64_t times = 0;
  };

  /// The part of an interval that lies in the pause, in order of time. Waits are those that ThreadTracker::at()
  /// reports.
  void add(const ThreadInterval& interval, std::uint64_t from_ns, std::uint64_t to_ns, const CpuHistory& cpus);

  /// At the end of the pause, with the time its thread was runnable in it: the waits must sum up to that. If
  /// inconsistent events made that time unknown later, no wait is reported, and all of it is unknown_competitors_ns().
  void settle(std::uint64_t runnable_ns);

  /// Calls `stacks_of(tid)` for each thread that had the cpu.
  template <typename StacksOf>
  void add_stacks(StacksOf&& stacks_of) {
    for (CpuCompetitor& competitor : competitors_)
      if (competitor.wait.by) competitor.stacks = stacks_of(competitor.wait.by->tid);
  }

  /// Longest wait first.
  std::vector<CpuCompetitor> competitors() const;
  /// Waits for a cpu behind further threads.
  std::uint64_t other_competitors_ns() const { return other_competitors_ns_; }
  /// Waits for a cpu behind unknown threads.
  std::uint64_t unknown_competitors_ns() const { return unknown_competitors_ns_; }
  /// Most often first.
  std::vector<Waker> wakers() const;
  std::uint64_t preempted() const { return preempted_; }  ///< times
  std::uint64_t blocked() const { return blocked_; }      ///< times
  std::uint64_t woken() const { return woken_; }          ///< times
  std::uint64_t migrations() const { return migrations_; }
  std::uint64_t longest_block_ns() const { return longest_block_ns_; }

 private:
  void add_wait(const CpuWait& wait);
  void add_waker(const Thread& by);

  std::vector<CpuCompetitor> competitors_;
  std::vector<Waker> wakers_;
  std::uint64_t other_competitors_ns_ = 0;
  std::uint64_t unknown_competitors_ns_ = 0;
  std::uint64_t preempted_ = 0;
  std::uint64_t blocked_ = 0;
  std::uint64_t woken_ = 0;
  std::uint64_t migrations_ = 0;
  std::uint64_t longest_block_ns_ = 0;
  std::int32_t last_cpu_ = -1;
};

/// A pause's part in one stop-the-world section.
struct PauseSection {
  std::shared_ptr<StwSection> section;
  std::size_t index = 0;             ///< of the pause's own domain in it
  std::uint64_t start_wait_ns = 0;   ///< waited for domains to arrive
  std::uint64_t finish_wait_ns = 0;  ///< waited for domains to end their minor collection
  std::uint64_t time_ns = 0;         ///< of this domain's stw_leader or stw_handler

  const StwDomain& own() const { return section->domains[index]; }
};

/// Times in ns; `begin_ns` is CLOCK_MONOTONIC.
struct PauseDetails {
  static constexpr std::size_t max_sections = 8, max_lost_domains = 16;

  DomainLife domain{};
  std::string comm{};
  std::uint16_t root = 0;  ///< outermost phase
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  bool late = false;     ///< it had late events: the scheduling is uncertain
  std::int32_t tid = 0;  ///< 0: unknown
  ThreadRole role = ThreadRole::unknown;
  std::string task{};  ///< TaskTracker::running_name() when it began

  PhaseTree phases{};
  TimeSplit time{};  ///< its total() is the duration
  /// Why not all of it is known, although there are scheduler events: runtime events of the pause came late, or
  /// scheduler events were lost.
  enum class UnknownAs : std::uint8_t { none, late, lost };
  UnknownAs unknown_as = UnknownAs::none;
  /// time.blocked() by what for.
  struct Blocked {
    std::uint64_t barrier = 0;  ///< in a barrier where domains wait for each other
    std::uint64_t section = 0;  ///< elsewhere in a stop-the-world section
    std::uint64_t other = 0;
  } blocked{};
  /// The duration once more: waits for other domains, and what the thread did besides.
  std::uint64_t start_wait_ns = 0;
  std::uint64_t finish_wait_ns = 0;
  TimeSplit besides{};

  SchedulingDetail scheduling{};
  std::vector<SeenStack> stacks{};       ///< of its thread, if stacks are sampled
  std::vector<PauseSection> sections{};  ///< those it spent the most time in, in order of time
  std::uint64_t section_count = 0;
  std::vector<std::uint16_t> lost_domains{};  ///< other domains in whose rings words were lost meanwhile

  std::uint64_t duration_ns() const { return end_ns - begin_ns; }
  /// Words were lost in another ring of the process.
  void lose(std::uint16_t lost_domain);
  /// The same once the pause is over; words of other processes and of other times do not matter.
  void lose(const DomainLife& in, const Loss& loss);
};

/// An open pause: collects its details.
struct OpenPause {
  PauseDetails details;
  ThreadTracker::Snapshot begin;  ///< the times of its thread up to the pause
  bool begins_lost = false;       ///< scheduler events were lost: what its thread did when it began is unknown
  TimeSplit in_sections{};        ///< what its thread did in stop-the-world sections
  TimeSplit in_barriers{};        ///< and in their barriers
  TimeSplit start_wait{};         ///< and while it waited for domains to arrive
  TimeSplit finish_wait{};        ///< and while it waited for domains to end their minor collection

  /// A part in a section is over.
  void took_part(PauseSection section);
  /// `time`: what its thread did from begin to end.
  PauseDetails finish(const PhaseEnd& root, const TimeSplit& time, ThreadRole role) &&;
};

}  // namespace rtev
