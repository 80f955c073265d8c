// SPDX-License-Identifier: MIT
// Follows the pauses and stop-the-world sections of all domains, and reports the details of each pause at its end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/pause_finder.hpp"
#include "analysis/pauses/pause_details.hpp"
#include "analysis/pauses/stop_the_world.hpp"
#include "analysis/pauses/thread_history.hpp"
#include "analysis/tasks/task_tracker.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// Gets the results of a PauseAnalyzer.
class PauseConsumer {
 public:
  virtual ~PauseConsumer() = default;
  virtual void on_pause_details(PauseDetails&& pause) = 0;
  /// A pause of unknown length.
  virtual void on_unfinished(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) = 0;
  /// Words of a ring are missing between these times.
  virtual void on_words_lost(const DomainLife& domain, const Loss& loss) = 0;
  // What else is seen on the way. These do nothing unless overridden.
  /// PauseListener::on_domain_begin() and on_domain_end().
  virtual void on_domain_seen(const DomainLife& /*domain*/, std::uint64_t /*time_ns*/, bool /*certain*/) {}
  virtual void on_domain_gone(const DomainLife& /*domain*/, std::uint64_t /*time_ns*/) {}
  /// A pause has begun. It ends with on_pause_details() or on_unfinished().
  virtual void on_pause_begun(const DomainLife& /*domain*/, std::uint64_t /*time_ns*/) {}
  /// A thread of a traced process leaves a state.
  virtual void on_thread_interval(const ThreadInterval& /*interval*/) {}
  /// A domain waited for a condition of the program, which is no pause.
  virtual void on_condition_wait(const DomainLife& /*domain*/, std::uint64_t /*ns*/) {}
};

/// A fold over the stream. Memory is bounded: by what is open, and the last section of each process. One thread.
class PauseAnalyzer final : private PauseListener, private ThreadObserver {
 public:
  /// `max_bytes`: of the phases of open pauses, and again of stop-the-world sections. Beyond that a pause has few
  /// phases, and sections do not name their domains.
  PauseAnalyzer(PauseConsumer& consumer, std::size_t max_bytes)
      : consumer_(consumer),
        world_(max_bytes / (2 * sizeof(StwDomain))),
        max_detailed_(max_bytes / (2 * PhaseTree::max_nodes * sizeof(PhaseTree::Node))) {}
  PauseAnalyzer(const PauseAnalyzer&) = delete;
  PauseAnalyzer& operator=(const PauseAnalyzer&) = delete;
  ~PauseAnalyzer() override;

  void header(const RunHeader& header) { finder_.header(header); }
  void add(const Event& event, const Batch& batch, const Registry& registry) {
    // Inline: almost all events are of these kinds, and there may be a million in a second.
    if (is_phase(event)) return finder_.add(event, batch, registry);
    if (is_user_event(event.kind)) return tasks_.add(event, batch, registry);
    add_other(event, batch, registry);
  }
  /// At the end of the stream.
  void finish(std::uint64_t time_ns) { finder_.finish(time_ns); }

  const PauseFinder& finder() const { return finder_; }
  const ThreadTracker& threads() const { return threads_; }
  const TaskTracker& tasks() const { return tasks_; }
  bool scheduler_seen() const { return scheduler_seen_; }

 private:
  /// A phase that synchronises domains and has not ended.
  struct OpenPhase {
    std::uint16_t phase = 0;
    std::uint64_t begin_ns = 0;
    ThreadTracker::Snapshot begin{};
    std::optional<StopTheWorld::Part> part{};  ///< of stw_leader and stw_handler
    std::uint64_t start_wait_ns = 0;
    std::uint64_t finish_wait_ns = 0;
    bool waits_for_others = false;  ///< a leader that has no barrier to wait at (before OCaml 5.3)
  };
  struct Domain {
    std::int32_t tid = 0;           ///< that writes its ring, in the pause or section; 0: unknown
    std::vector<OpenPhase> phases;  ///< outermost first
    std::optional<OpenPause> pause;
  };

  static constexpr std::size_t max_domains = std::size_t{1} << 17;  ///< without anything open
  /// A thread runs one domain. Of further pauses that it seems to be in, nothing is known but their times.
  static constexpr std::size_t max_pauses_of_thread = 4;

  void on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool certain) override {
    consumer_.on_domain_seen(domain, time_ns, certain);
  }
  void on_domain_end(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override;
  void on_phase_end(const DomainLife& life, const PhaseEnd& phase) override;
  void on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished reason) override;
  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) override;
  void on_loss(const DomainLife& life, const Loss& loss) override;
  void on_thread_interval(const ThreadInterval& interval) override;
  void on_cpu_interval(const CpuInterval& interval) override { cpus_.add(interval); }

  void add_other(const Event& event, const Batch& batch, const Registry& registry);
  void fold(const Event& event, const Batch& batch, const Registry& registry);
  void change_thread(std::uint64_t time_ns, const SchedSwitch& change);
  ThreadActivity activity(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const;
  void end_image(const ProcessRecord& record, const Event& event, const Registry& registry);
  Domain* find(const DomainLife& life);
  Domain& followed(const DomainLife& life);
  std::int32_t tid_of(const DomainLife& domain) const;
  static OpenPhase* innermost_part(Domain& domain);
  void arrive(const Domain& domain, OpenPhase& part, std::uint64_t time_ns);
  void pass_start(Domain& domain, OpenPhase& part, std::uint64_t begin_ns, std::uint64_t end_ns);
  void pass_minor_end(Domain& domain, OpenPhase& part, std::uint64_t begin_ns, std::uint64_t end_ns);
  void close_phase(Domain& domain, const DomainLife& life, const PhaseEnd& phase, bool ended);
  void forget_pause(Domain& domain);

  PauseConsumer& consumer_;
  PauseFinder finder_{*this};
  ThreadTracker threads_{this};
  CpuHistory cpus_{threads_};
  ThreadHistory history_{threads_, cpus_};
  SampleHistory samples_;
  const StackTable* stacks_ = nullptr;  ///< of the samples; null before there is one
  TaskTracker tasks_;
  StopTheWorld world_;
  static constexpr std::size_t few_nodes = 4;
  std::size_t max_detailed_, open_pauses_ = 0;
  std::map<std::uint64_t, Domain> domains_;  ///< by process and ring
  std::uint64_t last_key_ = 0;
  Domain* last_ = nullptr;                                    ///< the one found last: events come in runs
  std::unordered_multimap<std::int32_t, OpenPause*> by_tid_;  ///< open pauses of threads that are known
  bool scheduler_seen_ = false;
};

}  // namespace rtev
