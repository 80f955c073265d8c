// SPDX-License-Identifier: MIT
// Limits of a run, for continuous integration: `--fail-if 'p99>5ms'`.
#pragma once

#include <cstddef>
#include <cstdint>
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
  std::string text{};  ///< as the user wrote it
  Figure figure{};
  double percentile = 0;  ///< 0 to 100
  double most = 0;        ///< ns, or a share
};

/// Parses "p99>5ms", "p99.9>10ms", "max>50ms", "mean>1ms", "gc-share>20%".
std::optional<Limit> parse_limit(std::string_view text);

/// A fold over the stream. Pauses are the outermost runtime spans of a domain; each process counts alone.
class LimitCheck final : public ForwardingSink, private PauseListener {
 public:
  LimitCheck(Sink& sink, std::vector<Limit> limits);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// After summary(): a line for each limit that was exceeded, by the program that exceeds it most.
  const std::vector<std::string>& exceeded() const { return exceeded_; }

 private:
  struct Program {
    std::int32_t pid = 0;
    std::string comm{};  ///< as the process made it
    Histogram pauses{};
  };

  void on_pause_end(const DomainLife& domain, const PhaseEnd& root) override;
  std::optional<std::string> check(const Limit& limit, const StatsReport& report) const;

  /// Pauses of processes beyond that are not counted.
  static constexpr std::size_t max_processes = 1024;

  std::vector<Limit> limits_;
  PauseFinder finder_;
  std::map<ProcessIndex, Program> programs_;
  const Registry* registry_ = nullptr;  ///< while events come
  std::optional<Stats> stats_;          ///< if a limit asks for it
  std::vector<std::string> exceeded_;
};

}  // namespace rtev
