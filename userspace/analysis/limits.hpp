// SPDX-License-Identifier: MIT
// Limits of a run, for continuous integration: `--fail-if 'p99>5ms'`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/latency/histogram.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// What a figure of a program must not exceed.
struct Limit {
  enum class Figure : std::uint8_t {
    percentile,  ///< of its pauses, in ns
    max,         ///< the longest, in ns
    mean,        ///< in ns
    gc_share,    ///< of pauses in the time of its domains, 0 to 1
  };
  std::string text{};  ///< as the user wrote it, without blanks
  Figure figure{};
  double percentile = 0;  ///< 0 to 100
  double most = 0;        ///< ns, or a share
};

/// Durations of a program that limits apply to instead of its pauses.
struct Limited {
  std::string what{};  ///< "stalls", "spans \"request\"": escaped
  std::string comm{};  ///< as the process made it
  std::int32_t pid = 0;
  const Histogram* durations = nullptr;
};

/// The durations of all programs of a run.
struct LimitedDurations {
  std::vector<Limited> all{};
  /// Why nothing was measured, for messages: "no such span ended". Empty if something was, although no duration may be
  /// in `all`: shorter ones may be left out.
  std::string why_none{};
};

/// Parses "p99>5ms", "p99.9>10ms", "max>50ms", "mean>1ms", "gc-share>20%". Blanks are ignored; a time needs a unit.
std::optional<Limit> parse_limit(std::string_view text);

/// A fold over the stream. Pauses are the outermost runtime spans of a domain; each process counts alone.
class LimitCheck final : public ForwardingSink, private PauseListener {
 public:
  /// `limited`: called after the summary of `sink`. Without it limits apply to pauses.
  LimitCheck(Sink& sink, std::vector<Limit> limits, std::function<LimitedDurations()> limited = {});

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// After summary(): a line for each limit that was exceeded, by the program that exceeds it most, or for which
  /// nothing was measured.
  const std::vector<std::string>& failures() const { return failures_; }
  /// Pauses of processes beyond max_processes, to which limits apply as to those of one process.
  std::uint64_t checked_together() const { return others_.pauses.count(); }

  static constexpr std::size_t max_processes = 1024;

 private:
  struct Program {
    std::int32_t pid = 0;
    std::string comm{};  ///< as the process made it
    Histogram pauses{};
  };

  void on_pause_end(const DomainLife& domain, const PhaseEnd& root) override;
  /// Of all programs.
  LimitedDurations durations(const Registry& registry) const;
  static std::optional<std::string> check(const Limit& limit, const std::vector<Limited>& durations,
                                          const StatsReport& report);

  std::vector<Limit> limits_;
  NotRecorded not_recorded_{};
  std::function<LimitedDurations()> limited_;
  PauseFinder finder_;
  std::map<ProcessIndex, Program> programs_;
  Program others_{};                    ///< those beyond max_processes, without a pid
  const Registry* registry_ = nullptr;  ///< while events come
  std::optional<Stats> stats_;          ///< if a limit asks for it
  std::vector<std::string> failures_;
};

}  // namespace rtev
