// SPDX-License-Identifier: MIT
// Metrics and long pauses as OpenTelemetry sends them: requests of OTLP in protocol buffers, not compressed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/text_buffer.hpp"
#include "metrics/metric_visitor.hpp"
#include "metrics/pause_spans.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// An ExportMetricsServiceRequest. Sums are cumulative since the start of the run, or of the first one whose figures it
/// goes on with; durations are exponential histograms in seconds.
class OtlpMetrics final : public MetricVisitor {
 public:
  /// `now_ns`: CLOCK_MONOTONIC. `since_ns`: CLOCK_REALTIME.
  OtlpMetrics(const RunHeader& run, std::uint64_t now_ns, std::uint64_t since_ns);
  OtlpMetrics(const RunHeader& run, std::uint64_t now_ns) : OtlpMetrics(run, now_ns, run.start_realtime_ns) {}

  void family(const MetricFamily& family) override;
  void value(MetricLabels labels, std::int64_t amount) override;
  void histogram(MetricLabels labels, const DurationHistogram& histogram) override;

  /// Once, after all metrics.
  std::string request();

 private:
  void end_family();

  const RunHeader& run_;
  std::uint64_t start_ns_, now_ns_;  ///< CLOCK_REALTIME
  MetricFamily family_{};
  TextBuffer points_;   ///< of the family
  TextBuffer metrics_;  ///< of the families before
};

/// An ExportTraceServiceRequest: a span for each pause, of the service of its group.
std::string otlp_spans(std::span<const PauseSpan> pauses, const RunHeader& run);

}  // namespace rtev
