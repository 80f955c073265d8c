// SPDX-License-Identifier: MIT
// `rtev-bpf latency`: how long pauses are, or the spans of one phase, and what their threads did meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/latency/domain_time.hpp"
#include "analysis/latency/latency_figures.hpp"
#include "analysis/latency/phase_meters.hpp"
#include "analysis/missing_events.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/utilization/mutator_utilization.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct LatencyOptions {
  enum class Format : std::uint8_t { text, json };
  Format format = Format::text;
  PauseRule rule = PauseRule::outermost;
  std::string phase{};             ///< spans of this phase, nested or not, instead of pauses
  std::uint64_t min_ns = 0;        ///< shorter ones are only counted
  std::uint64_t interval_ns = 0;   ///< 0: a report at the end only
  bool full = false;               ///< text with all percentiles of each process and domain
  bool by_process = false;         ///< LatencyReport::by_process
  std::size_t max_domains = 4096;  ///< listed; beyond that, those of ended processes are merged
  /// Of histograms. Beyond that the domains with the least time are merged, whether they ended or not.
  std::size_t max_bytes = std::size_t{64} << 20;
};

/// The names that LatencyOptions::phase understands.
std::vector<std::string> phase_names();

/// A fold over the stream. With each interval of the stream's time it writes a report of the interval to the output, as
/// JSON also one of all so far, and with summary() the one of the whole run. Intervals that pass at once, without an
/// event between, are reported as one. Pauses are reported by domain number: the domains that have one after the other
/// are together. Those that last still at the end are counted as unfinished.
class Latency final : public Sink, private PauseListener {
 public:
  Latency(LatencyOptions options, Output& output);
  ~Latency() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override { pass(time_ns, registry); }
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return time_.inconsistent_switches(); }

  /// Of the whole run so far.
  LatencyReport report(const Registry& registry) const;
  std::string report_text(const Registry& registry) const { return latency_text(report(registry), options_.full); }
  std::string report_json(const Registry& registry) const { return latency_json(report(registry)); }

 private:
  struct DomainEntry {
    std::uint32_t incarnations = 0;
    LatencyFigures total{};
    LatencyFigures interval{};  ///< filled if there are intervals

    std::size_t memory_bytes() const { return total.memory_bytes() + interval.memory_bytes(); }
  };
  struct ProcessEntry {
    std::int32_t pid = 0;
    std::string comm{}, exe{};
    bool ended = false;
    std::map<std::uint16_t, DomainEntry> domains{};
  };
  using Part = LatencyFigures DomainEntry::*;

  void on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool certain) override;
  void on_domain_end(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_pause_begin(const DomainLife& domain, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& domain, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) override;
  void on_phase_begin(const DomainLife& domain, const PhaseBegin& phase) override;
  void on_phase_end(const DomainLife& domain, const PhaseEnd& phase) override;
  void on_phase_dropped(const DomainLife& domain, const PhaseEnd& phase, Unfinished reason) override;
  void on_loss(const DomainLife& domain, const Loss& loss) override;

  bool is_wanted(const DomainLife& domain, std::uint16_t phase) const;
  void record(const DomainLife& domain, const PhaseEnd& span);
  void drop(const DomainLife& domain, const PhaseEnd& span, Unfinished reason);
  template <typename Change>
  void update(const DomainLife& domain, const Change& change);
  static std::uint64_t time_of(const ProcessEntry& entry);
  bool make_room();
  void merge_domains();
  void merge_into_others(const DomainEntry& domain);
  void note_process(const Event& event, const Batch& batch, const Registry& registry);
  void pass(std::uint64_t time_ns, const Registry& registry);
  void end_interval(std::uint64_t end_ns, const Registry& registry);
  void write(const LatencyReport& report);
  static void describe(ProcessEntry& entry, const ProcessInfo& info);
  LatencyReport report_of(LatencyReport::Span span, std::uint64_t from_ns, std::uint64_t to_ns,
                          const Registry& registry) const;
  LatencyReport::Process report_of(ProcessIndex index, const ProcessEntry& entry, Part part,
                                   const Registry& registry) const;

  LatencyOptions options_;
  Output& output_;
  PauseFinder finder_;
  DomainTime time_;
  PhaseMeters meters_{time_};  ///< of the spans that are wanted
  MutatorUtilization utilization_;
  std::array<std::optional<Phase>, 2> phase_{};  ///< LatencyOptions::phase, by Family
  const Registry* registry_ = nullptr;           ///< during consume()
  std::map<ProcessIndex, ProcessEntry> processes_;
  /// Of ended processes: time in pauses when it was put here, and index. Some may be gone or have more time by now.
  std::set<std::pair<std::uint64_t, ProcessIndex>> ended_;
  std::size_t domains_ = 0;                         ///< in processes_
  std::size_t bytes_ = 0;                           ///< of their histograms
  DomainEntry others_;                              ///< incarnations: how many domains they are
  std::string version_;                             ///< of rtev-bpf
  std::uint64_t run_ns_ = 0, run_realtime_ns_ = 0;  ///< of the header
  std::uint64_t start_ns_ = 0;                      ///< of what is reported
  std::size_t interval_lines_ = 0;                  ///< of text, since its titles
  std::uint64_t interval_begin_ns_ = 0;
  std::uint64_t last_ns_ = 0;  ///< newest time of an event
  DroppedEvents dropped_;
  ReadProgramCount read_programs_;
  OwnShare own_;
  std::uint64_t rings_missed_ = 0;
  std::vector<Lack> lacks_;
  bool truncated_ = false;
  NotRecorded not_recorded_;
  std::uint64_t words_before_ = 0;
  std::uint64_t merged_processes_ = 0;  ///< all of whose domains are among the others
};

}  // namespace rtev
