// SPDX-License-Identifier: MIT
// Reads a recording for `diff`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/diff/recorded_program.hpp"
#include "analysis/missing_events.hpp"
#include "analysis/open_spans.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/spans/library_spans.hpp"
#include "stream/records.hpp"
#include "stream/sink.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// A fold over the stream. Processes of one program are counted together. Memory is bounded. One thread.
class RecordedRunSink final : public Sink, private PauseListener, private ThreadObserver {
 public:
  static constexpr std::size_t max_programs = 32, max_spans = 24, max_domains = std::size_t{1} << 16,
                               max_sample_cells = std::size_t{1} << 22, max_remembered = std::size_t{1} << 16;

  RecordedRunSink() = default;
  RecordedRunSink(const RecordedRunSink&) = delete;
  RecordedRunSink& operator=(const RecordedRunSink&) = delete;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// After summary(). To be called once.
  RecordedRun take() { return std::move(run_); }

 private:
  /// How many there are of each at present.
  struct Level {
    std::uint64_t processes = 0, domains = 0, heaps = 0;
    double heap_bytes = 0;
  };
  struct SampleKey {
    std::size_t program = 0;
    StackIndex stack = 0;
    SampleKind kind{};
    bool in_phase = false;  ///< of the GC
    auto operator<=>(const SampleKey&) const = default;
  };
  struct SampleCount {
    std::uint16_t slice = 0;
    std::uint32_t count = 0;
  };
  struct Program {
    std::size_t index = 0;
    RecordedProgram record{};
    Level level{};
    std::uint64_t settled_ns = 0;  ///< the time before is in the sums
  };
  struct Process {
    Program* program = nullptr;
    std::int32_t pid = 0;
    std::uint64_t begin_ns = 0;
    bool knows_heap = false;
    std::uint64_t leader_ns = 0, last_arrival_ns = 0;  ///< of the stop-the-world section; 0: none
  };
  struct Domain {
    ProcessIndex process = 0;
    std::vector<std::uint16_t> phases{};  ///< that are open, innermost last
    std::uint64_t phase_since_ns = 0;     ///< the time of the innermost one before is in the sums
    bool collects_minor = false;          ///< in the pause
    std::int32_t tid = 0;                 ///< of the pause; 0: unknown
    ThreadTracker::Snapshot pause_begin{};
    double pool_words = 0, large_words = 0, heap_bytes = 0;
    OpenSpans<64> spans{};
  };

  void add(const Event& event, const Batch& batch, const Registry& registry);
  void add_process(const Event& event, const Batch& batch, const Registry& registry);
  void add_ring_event(const Event& event, const Batch& batch, const RingInfo& ring, const Registry& registry);
  void reach(std::uint64_t time_ns);
  Process* process_at(ProcessIndex index, const Registry& registry, std::uint64_t time_ns);
  Program* program_of(const ProcessInfo& info);
  Domain* domain_at(std::uint64_t key, ProcessIndex process);
  void settle(Program& program, std::uint64_t time_ns);
  void end_process(ProcessIndex index, std::uint64_t time_ns);

  void spread(Program& program, std::size_t sum, std::uint64_t begin_ns, std::uint64_t end_ns, double weight = 1);
  void spread(Program& program, SliceSum sum, std::uint64_t begin_ns, std::uint64_t end_ns, double weight = 1) {
    spread(program, static_cast<std::size_t>(sum), begin_ns, end_ns, weight);
  }
  void count(Program& program, SliceSum sum, std::uint64_t time_ns, double amount = 1);
  void measure(Program& program, SlicedDistribution& distribution, std::uint64_t begin_ns, std::uint64_t end_ns);

  void counter(Program& program, Process& process, Domain& domain, const Event& event, Family family);
  void set_heap(Program& program, Process& process, Domain& domain, double bytes, std::uint64_t time_ns);
  void user_event(Program& program, Domain& domain, const Event& event, const Batch& batch, const RingInfo& ring);
  void end_span(Program& program, const std::optional<OpenSpan>& span, const Event& event, const RingInfo& ring);
  void sample(const Event& event, const Batch& batch);
  bool is_in_phase(const Sample& sample) const;
  void name_samples(const Registry& registry);
  void pass_phase(Program& program, Domain& domain, const DomainLife& life, std::uint64_t time_ns);
  void leave_phase(const DomainLife& life, std::uint16_t phase, std::uint64_t time_ns, bool known);

  /// Null for domains that there is no room for.
  struct Place {
    Process* process = nullptr;
    Domain* domain = nullptr;
    explicit operator bool() const { return domain != nullptr; }
    Program& program() const { return *process->program; }
  };
  Place place(const DomainLife& life);

  void on_domain_begin(const DomainLife& life, std::uint64_t time_ns, bool certain) override;
  void on_domain_end(const DomainLife& life, std::uint64_t time_ns) override;
  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override;
  void on_phase_end(const DomainLife& life, const PhaseEnd& phase) override;
  void on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished reason) override;
  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override;
  void on_loss(const DomainLife& life, const Loss& loss) override;
  void on_thread_interval(const ThreadInterval& interval) override;

  RecordedRun run_{};
  SliceClock clock_;
  PauseFinder finder_{*this};
  ThreadTracker threads_{this};
  LibrarySpans libraries_;
  DroppedEvents dropped_;
  DistributionBudget budget_{};
  std::vector<std::unique_ptr<Program>> programs_;
  std::unordered_map<std::string, Program*> by_name_;
  std::unordered_map<ProcessIndex, Process> processes_;    ///< that run
  std::unordered_set<ProcessIndex> left_out_;              ///< there is no room for their programs
  std::unordered_set<ProcessIndex> ended_;                 ///< their late events are not counted
  std::unordered_map<std::int32_t, ProcessIndex> images_;  ///< by pid, of these
  std::map<std::uint64_t, Domain> domains_;                ///< by DomainLife::key(): those of a process are together
  std::pair<std::uint64_t, Domain*> recent_domain_{};      ///< the one asked for last; null: none
  std::map<SampleKey, std::vector<SampleCount>> samples_{};
  std::size_t sample_cells_ = 0;
  std::uint64_t last_ns_ = 0;
};

}  // namespace rtev
