// SPDX-License-Identifier: MIT
// `rtev-bpf summary`: the answers of stats, latency and pauses on one screen.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/latency/latency_sink.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "stream/discarding_output.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct SummaryOptions {
  std::string input{};                            ///< PausesReport::input
  bool by_process = false;                        ///< as in StatsReport and LatencyReport
  bool full = false;                              ///< the three full texts, one after the other
  std::size_t max_bytes = std::size_t{64} << 20;  ///< of all three
};

/// A fold over the stream, by the three of them. Memory is bounded. One thread.
class Summary final : public Sink {
 public:
  explicit Summary(const SummaryOptions& options);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return pauses_.scheduler_gaps(); }

  std::string report_text(const Registry& registry);
  /// The three reports, a line each.
  std::string report_json(const Registry& registry);

 private:
  bool full_;
  DiscardingOutput nowhere_;  ///< of Latency, which would write its reports itself
  Stats stats_;
  Latency latency_;
  Pauses pauses_;
};

}  // namespace rtev
