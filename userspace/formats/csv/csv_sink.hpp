// SPDX-License-Identifier: MIT
// Tables for databases and spreadsheets: a row for each thing that has ended, with its begin and its length, and rows
// with the figures of each process. docs/csv.md documents the columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/latency/phase_meters.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "formats/csv/csv_row.hpp"
#include "formats/line_sink.hpp"

namespace rtev {

/// Each row says all by itself, so that files of many hosts go into one table. Its figures are those of the reports
/// `latency`, `latency --span` and `stats`, which count for it. A row is a line. Memory is bounded: processes of which
/// there are too many to be listed in a report get their rows earlier.
class CsvSink final : public LineSink, private PauseListener, private ThreadObserver {
 public:
  /// Shorter waits for a CPU have no row.
  static constexpr std::uint64_t min_wait_ns = 1'000'000;

  CsvSink(Output& output, std::string label);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  /// Writes the rows of what goes on, and of the run, and flushes.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  /// A process image that runs.
  struct Image {
    std::uint64_t begin_ns = 0;
    std::string_view how{};  ///< it came into view; empty: unknown
    std::uint64_t waited_ns = 0;
  };
  /// A phase that is open.
  struct OpenPhase {
    std::uint64_t begin_ns = 0;
    std::uint64_t inner_ns = 0;  ///< in phases within it
    bool is_pause = false;
  };
  /// Of a domain.
  struct Phases {
    std::vector<OpenPhase> open{};  ///< innermost last
    bool pause_begins = false;      ///< with the next phase
    std::uint64_t pause_own_ns = 0;
  };

  void on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool certain) override;
  void on_domain_end(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_phase_begin(const DomainLife& domain, const PhaseBegin& phase) override;
  void on_phase_end(const DomainLife& domain, const PhaseEnd& phase) override;
  void on_phase_dropped(const DomainLife& domain, const PhaseEnd& phase, Unfinished reason) override;
  void on_pause_begin(const DomainLife& domain, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& domain, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) override;
  void on_thread_interval(const ThreadInterval& interval) override;

  void add(const Event& event, const Batch& batch);
  void add_process(const Event& event, const ProcessRecord& record);
  void end_process(const Event& event, const ProcessRecord& record);
  void add_ring_event(const Event& event, const Batch& batch);
  void add_loss(const Event& event, const Loss& loss);
  void add_span(const SpanEnd& end);
  void add_figures(const ProcessStats& process, bool truncated);
  void add_run(const RunSummary& summary, const Registry& registry);
  void add_image(ProcessIndex index, const Image& image, std::uint64_t end_ns, std::string_view state);
  Image& see(ProcessIndex index, std::int32_t pid, std::uint64_t time_ns);
  OpenPhase take(const DomainLife& domain, const PhaseEnd& phase);
  void write(const CsvRow& row) {
    writer_.add(row);
    end_line();
  }

  CsvWriter writer_;
  const Registry* registry_ = nullptr;  ///< while events come
  RunHeader header_{};
  std::uint64_t now_ns_ = 0;  ///< newest time seen
  PauseFinder finder_{*this};
  DomainTime time_{this};
  PhaseMeters meters_{time_};  ///< of pauses
  Spans spans_;
  Stats stats_;
  std::unordered_map<std::uint64_t, Phases> phases_;        ///< by DomainLife::key()
  std::unordered_map<ProcessIndex, Image> images_;          ///< that run
  std::unordered_map<std::int32_t, ProcessIndex> running_;  ///< the image of a pid
  std::string scratch_, state_;                             ///< texts under construction
};

}  // namespace rtev
