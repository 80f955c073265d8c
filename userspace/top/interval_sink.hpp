// SPDX-License-Identifier: MIT
// The figures of `stats` and `pauses` by interval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "analysis/latency/histogram.hpp"
#include "analysis/pauses/cause_groups.hpp"
#include "analysis/pauses/pause_analyzer.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "analysis/tasks/tasks_sink.hpp"
#include "base/recent_entries.hpp"
#include "stream/sink.hpp"
#include "top/interval.hpp"

namespace rtev::top {

struct IntervalOptions {
  std::uint64_t interval_ns = 1'000'000'000;
  bool details = false;  ///< intervals have the details of all processes
};

/// A fold over the stream. Figures of a running process are sums of the whole run: an interval has the difference of
/// two. Memory is bounded by the number of running processes and domains. One thread.
class IntervalSink final : public Sink, private PauseConsumer {
 public:
  /// Called at the end of each interval, from within consume() and advance().
  using Done = std::function<void(Interval&& interval)>;

  IntervalSink(const IntervalOptions& options, Done done);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;

  const RunHeader& run() const { return header_; }
  /// As of now, between the first call of consume() or advance() and that of summary(). Empty for a process that does
  /// not run.
  ProcessDetails details_of(ProcessIndex index);

 private:
  struct Domain {
    std::uint64_t pauses = 0, worst_ns = 0;
    std::optional<std::uint64_t> pause_since_ns{};
  };
  struct Activity {
    Histogram pauses{};  ///< of the interval, as are the next three
    std::uint64_t worst_ns = 0;
    std::uint64_t sections = 0, arrival_ns = 0;
    std::map<std::uint16_t, Domain> domains{};
    std::unique_ptr<CauseGroups> causes{};  ///< of those with most time in pauses only
    std::uint64_t pause_ns = 0;
  };
  struct Heap {
    std::uint64_t time_ns, bytes;
  };
  /// Of the threads of a process in the interval.
  struct ThreadTime {
    std::uint64_t runnable_ns = 0, cpu_ns = 0;
  };
  /// Of a process at the end of the last interval.
  struct Before {
    StatsFigures figures{};
    std::deque<Heap> heaps{};  ///< of the last minute
  };
  /// How many processes have their causes kept: those of one may take megabytes.
  static constexpr std::size_t max_with_causes = 64;
  static constexpr std::size_t max_causes = 6, max_spans = 8, max_domains = 128, max_runs = 3, max_waits = 3;
  static constexpr std::uint64_t growth_window_ns = 60'000'000'000;

  void take(const Batch& batch, const Registry& registry);
  void end_intervals(std::uint64_t time_ns, const Registry& registry);
  void end_interval(std::uint64_t time_ns, const Registry& registry);
  /// Merges the lengths of its pauses into `lengths`.
  ProcessFigures figures_of(ProcessIndex index, const ProcessStats& process, std::uint64_t time_ns, Histogram& lengths);
  static void add_programs(Interval& interval, const std::unordered_map<std::uint32_t, Histogram>& lengths);
  std::uint32_t program_of(const ProcessStats& process);
  ProcessDetails details_of(ProcessIndex index, const ProcessStats& process);
  std::vector<std::string> task_lines(ProcessIndex index) const;
  std::string state_of(std::int32_t pid, std::uint16_t domain, const Domain* known) const;
  CauseGroups& causes_of(Activity& activity);
  std::string sentence_about(const PauseDetails& pause, bool with_program) const;
  SwitchesSeen switches_seen() const;

  void on_pause_begun(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_pause_details(PauseDetails&& pause) override;
  void on_unfinished(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) override;
  void on_words_lost(const DomainLife& /*domain*/, const Loss& /*loss*/) override {}
  void on_domain_gone(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_thread_interval(const ThreadInterval& interval) override;

  IntervalOptions options_;
  Done done_;
  Stats stats_;
  PauseAnalyzer analyzer_;
  Tasks tasks_{{.what_for = false}};
  const Registry* registry_ = nullptr;  ///< the last one; null after summary()
  std::unordered_map<ProcessIndex, Activity> activities_;
  std::unordered_map<ProcessIndex, Before> before_;
  std::unordered_map<std::string, std::uint32_t> programs_;  ///< their numbers, by program_key()
  std::uint32_t last_program_ = 0;
  std::unordered_map<std::int32_t, ThreadTime> thread_times_;  ///< by pid
  RecentEntries<ThreadTime> recent_times_;
  std::optional<PauseDetails> worst_{};  ///< of the interval
  std::uint64_t longest_open_ns_ = 0;    ///< of the pauses that go on at its end
  std::string longest_open_{};           ///< a sentence about that one
  std::size_t with_causes_ = 0;
  std::uint64_t dropped_ = 0;
  RunHeader header_{};
  bool is_truncated_ = false;   ///< the stream ended, and the recording lacks its end
  std::uint64_t begin_ns_ = 0;  ///< of the interval
  std::uint64_t next_ns_ = 0;   ///< its end
  std::uint64_t now_ns_ = 0;    ///< newest time seen
};

}  // namespace rtev::top
