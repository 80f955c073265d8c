// SPDX-License-Identifier: MIT
// `rtev-bpf report`: everything that the HTML report shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/html_report/pause_timelines.hpp"
#include "analysis/html_report/report_findings.hpp"
#include "analysis/html_report/report_series.hpp"
#include "analysis/latency/latency_sink.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "analysis/profile/profile_sink.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "analysis/stalls/stalls_sink.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "analysis/tasks/tasks_sink.hpp"
#include "stream/discarding_output.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct HtmlReportOptions {
  std::string input{};                            ///< PausesReport::input
  std::size_t max_bytes = std::size_t{64} << 20;  ///< of all parts
};

/// What the HTML report is made of. Refers to the sink and the registry.
struct HtmlReport {
  RunHeader header{};
  RunSummary run{};
  StatsReport stats{};
  LatencyReport latency{};
  PausesReport pauses{};
  SpansReport spans{};
  const StallsReport* stalls = nullptr;
  const TasksReport* tasks = nullptr;
  std::vector<ProfileReport> profiles{};  ///< those with samples
  const ReportSeries* series = nullptr;
  const PauseTimelines* timelines = nullptr;
  const StackTable* stacks = nullptr;
  std::vector<Finding> findings{};
};

/// A fold over the stream, by the sinks of the reports whose figures it shows. Memory is bounded. One thread.
class HtmlReportSink final : public Sink {
 public:
  explicit HtmlReportSink(const HtmlReportOptions& options);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return pauses_.scheduler_gaps(); }

  /// After summary(). Valid as long as this object and the registry.
  HtmlReport report(const Registry& registry);

 private:
  std::array<Sink*, 9> parts() {
    return {&stats_, &latency_, &pauses_, &spans_, &stalls_, &tasks_, &on_cpu_, &off_cpu_, &allocations_};
  }

  std::string input_;
  DiscardingOutput discarded_;  ///< of Latency, which would write its reports itself
  ReportSeries series_;
  PauseTimelines timelines_;
  Stats stats_;
  Latency latency_;
  Pauses pauses_;
  Spans spans_;
  Stalls stalls_;
  Tasks tasks_;
  Profile on_cpu_, off_cpu_, allocations_;
  RunHeader header_{};
  RunSummary run_{};
  std::uint64_t last_ns_ = 0;
};

}  // namespace rtev
