// SPDX-License-Identifier: MIT
// Reads requests of OTLP with the library of protocol buffers, and checks what every collector relies on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::test {

using OtlpAttributes = std::map<std::string, std::string>;

/// A value, or an exponential histogram.
struct OtlpPoint {
  double value = 0;
  std::uint64_t start_ns = 0, time_ns = 0;  ///< CLOCK_REALTIME
  std::uint64_t count = 0;
  double sum = 0;
  std::int32_t scale = 0;
  std::map<std::int32_t, std::uint64_t> buckets{};  ///< counts by index

  /// An upper bound of the quantile (0 to 1): the end of its bucket.
  double quantile(double which) const;
};
struct OtlpMetric {
  std::string unit{};
  enum class Kind : std::uint8_t { gauge, counter, histogram } kind = Kind::gauge;
  std::map<OtlpAttributes, OtlpPoint> points{};
};
struct OtlpMetricsContent {
  OtlpAttributes resource{};
  std::map<std::string, OtlpMetric> metrics{};  ///< by name
};
struct OtlpSpan {
  OtlpAttributes resource{}, attributes{};
  std::string trace_id{}, span_id{}, name{};
  std::uint64_t start_ns = 0, end_ns = 0;
};

/// Not compressed. They fail the test if a request cannot be read, or breaks a rule: names and points are unique, sums
/// and histograms are cumulative, the counts of buckets add up.
OtlpMetricsContent read_otlp_metrics(std::string_view request);
std::vector<OtlpSpan> read_otlp_spans(std::string_view request);

}  // namespace rtev::test
