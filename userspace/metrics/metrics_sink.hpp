// SPDX-License-Identifier: MIT
// Metrics of all traced programs by group: a fold over the stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/pauses/pause_analyzer.hpp"
#include "metrics/group_figures.hpp"
#include "metrics/group_name.hpp"
#include "metrics/group_table.hpp"
#include "metrics/metric_visitor.hpp"
#include "metrics/pause_spans.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct MetricsOptions {
  GroupTemplate groups = GroupTemplate::parse(GroupTemplate::standard).value();
  std::size_t max_groups = 50;  ///< further programs are counted in the group "other": see GroupTable
  UserMetricOptions user{};
  bool tasks = false;  ///< count fibers and other tasks
  /// Pauses of this length and longer become spans; 0: none.
  std::uint64_t pause_span_ns = 0;
};

/// Takes the stream as any sink does: ask it for metrics with visit(). What it counts stays when processes end, so
/// short-lived ones are included. Figures are those of `latency`, `stats` and `pauses` of the same time. Memory is
/// bounded by the number of groups and of running domains. One thread.
class MetricsSink final : public Sink, private PauseConsumer {
 public:
  explicit MetricsSink(MetricsOptions options);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary&, const Registry&) override {}

  /// All metrics as of now.
  void visit(MetricVisitor& visitor);
  const RunHeader& run() const { return header_; }
  /// Is called once: for the first process of a user that is counted in "other" because there is no room for its group.
  using OnFolded = std::function<void(const std::string& group, std::uint32_t user)>;
  void on_folded(OnFolded on_folded) { on_folded_ = std::move(on_folded); }
  /// Long pauses since the last call.
  std::vector<PauseSpan> take_pause_spans() { return spans_.take(); }

 private:
  struct Domain {
    std::array<std::uint64_t, heap_counter_count> heap{};  ///< last values
    std::uint64_t minor_collections = 0, major_cycles = 0, compactions = 0;
  };
  struct Process {
    Group* group = nullptr;
    std::map<std::uint16_t, Domain> domains{};
    /// The greatest counts of its domains: each takes part once in the collections of all.
    std::uint64_t minor_collections = 0, major_cycles = 0, compactions = 0;
    std::array<std::uint64_t, heap_counter_count> heap{};
    std::int64_t running_domains = 0;
    EventsRead events = EventsRead::yes;
  };
  static constexpr std::size_t analyzer_bytes = std::size_t{4} << 20;
  /// How often processes in "other" are looked at again: there may be room for their groups by now.
  static constexpr std::uint64_t regroup_ns = 60'000'000'000;
  /// How often it is looked whose rings are read: mostly an event says when that changes.
  static constexpr std::uint64_t note_events_ns = 1'000'000'000;

  void add_process(const Event& event, const Batch& batch);
  void end_process(ProcessIndex index, std::int64_t status);
  void add_counter(const Event& event, const RingInfo& ring);
  void add_loss(const Event& event, const Batch& batch);
  void add_usage(const Event& event, const Batch& batch);
  Group* group_of_pid(std::int32_t pid);
  void forget_heap(Process& process, Domain& domain);
  Process* process_at(ProcessIndex index);
  Process* read_process_at(ProcessIndex index);
  Group& group_of(ProcessIndex index);
  Group* group_for(const ProcessInfo& info);
  Group& fold(const ProcessInfo& info);
  void move(Process& process, Group& to);
  void note_events(Process& process, const ProcessInfo& info);
  void empty(Group& removed);
  void name_again(const Registry& registry);
  void regroup(const Registry& registry);

  void on_pause_details(PauseDetails&& pause) override;
  void on_unfinished(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) override;
  void on_words_lost(const DomainLife& /*domain*/, const Loss& /*loss*/) override {}
  void on_domain_seen(const DomainLife& domain, std::uint64_t time_ns, bool certain) override;
  void on_domain_gone(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_thread_interval(const ThreadInterval& interval) override;
  void on_condition_wait(const DomainLife& domain, std::uint64_t ns) override;
  void add_sections(const PauseDetails& pause, GroupFigures& figures) const;
  void update_cpu();
  void update_tasks();

  MetricsOptions options_;
  PauseAnalyzer analyzer_{*this, analyzer_bytes};
  UserMetrics user_;
  PauseSpans spans_;
  RunHeader header_{};
  std::uint64_t start_ticks_ = 0;  ///< of the run, see boot_ticks()
  GroupTable groups_;
  Group other_;
  std::uint64_t folded_ = 0;  ///< processes in `other_`
  OnFolded on_folded_;        ///< null once it was called
  std::uint64_t next_regroup_ns_ = 0;
  std::uint64_t next_note_events_ns_ = 0;
  std::unordered_map<ProcessIndex, Process> processes_;
  std::unordered_map<std::int32_t, ProcessIndex> images_;  ///< by pid, of those that run
  std::set<ProcessIndex> nameless_;                        ///< whose service was not known when they came
  /// Late events of these are counted in their group, but add no process. Until the registry forgets them.
  std::unordered_set<ProcessIndex> ended_;
  ProcessIndex last_index_ = 0;
  Process* last_process_ = nullptr;     ///< the one asked for last: events come in runs
  const Registry* registry_ = nullptr;  ///< during consume() and advance()
  std::uint64_t now_ns_ = 0;
  std::array<std::uint64_t, event_kind_count> events_{};
  std::uint64_t sched_dropped_ = 0, samples_dropped_ = 0;
  bool has_usage_ = false;  ///< there are usage events: switches are those of pauses only
};

}  // namespace rtev
