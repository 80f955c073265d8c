// SPDX-License-Identifier: MIT
// `rtev-bpf pauses`: the worst pauses, each taken apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/missing_events.hpp"
#include "analysis/pauses/pause_analyzer.hpp"
#include "analysis/pauses/pauses_report.hpp"
#include "analysis/pauses/worst_pauses.hpp"
#include "analysis/utilization/mutator_utilization.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct PausesOptions {
  static constexpr std::size_t max_top = 1000;  ///< each takes some tens of KiB

  std::size_t top = 10;       ///< how many pauses are reported; at most max_top
  std::uint64_t min_ns = 0;   ///< shorter ones are only counted
  bool full = false;          ///< text with all details
  bool longest_only = false;  ///< short text with the longest pauses, not with the worst by cause
  std::string input{};        ///< PausesReport::input
  /// Of the phases of open pauses, and again of stop-the-world sections: beyond that there are fewer details.
  std::size_t max_bytes = std::size_t{16} << 20;
  /// Called for each pause of `min_ns` and longer at its end.
  std::function<void(const PauseDetails&)> on_pause{};
};

/// A fold over the stream. A pause is the outermost runtime span of a domain (PauseRule::outermost). Its report can be
/// asked for at any time. Memory is bounded. One thread.
class Pauses final : public Sink, private PauseConsumer {
 public:
  explicit Pauses(PausesOptions options);
  ~Pauses() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return analyzer_.threads().inconsistent_switches(); }

  /// As of now. Refers to this object and the registry: valid until the next call of a non-const function, and as long
  /// as the registry.
  PausesReport report();
  std::string report_text() { return rtev::report_text(report()); }
  std::string report_json() { return rtev::report_json(report()); }

 private:
  void on_pause_details(PauseDetails&& pause) override;
  void on_unfinished(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) override;
  void on_words_lost(const DomainLife& domain, const Loss& loss) override;
  void on_domain_seen(const DomainLife& domain, std::uint64_t time_ns, bool certain) override {
    utilization_.begin_domain(domain, time_ns, certain);
  }
  void on_domain_gone(const DomainLife& domain, std::uint64_t time_ns) override {
    utilization_.end_domain(domain, time_ns);
  }

  PausesOptions options_;
  PauseAnalyzer analyzer_;
  WorstPauses worst_;
  CauseGroups groups_;
  MutatorUtilization utilization_;
  static constexpr std::size_t several = 2;
  std::set<ProcessIndex> processes_;         ///< that had pauses: one, or several of them
  std::vector<UnfinishedPause> unfinished_;  ///< longest first
  PausesReport::Counts counts_{};
  DroppedEvents dropped_;
  bool truncated_ = false;
  std::vector<Lack> lacks_;
  ReadProgramCount read_programs_;
  ReadPrograms read_;  ///< at the end
  OwnShare own_;
  const Registry* registry_ = nullptr;  ///< while events come
  StackTable no_stacks_;
  const StackTable* stacks_ = &no_stacks_;  ///< those of the registry, once there was one
  RunHeader header_{};
  std::uint64_t last_ns_ = 0;  ///< newest time of an event, then the end of the run
};

}  // namespace rtev
