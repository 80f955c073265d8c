// SPDX-License-Identifier: MIT
#include "support/otlp_check.hpp"

#include <gtest/gtest.h>
#include <otlp.pb.h>

#include <cmath>

namespace rtev::test {
namespace {

using namespace otlp_proto;

template <typename Owner>
OtlpAttributes attributes_of(const Owner& owner) {
  OtlpAttributes attributes;
  for (const KeyValue& pair : owner.attributes()) {
    const bool is_new = attributes
                            .emplace(pair.key(), pair.value().has_int_value() ? std::to_string(pair.value().int_value())
                                                                              : pair.value().string_value())
                            .second;
    EXPECT_TRUE(is_new) << pair.key();
  }
  return attributes;
}

OtlpPoint point_of(const NumberDataPoint& from) {
  return {.value = from.has_as_int() ? static_cast<double>(from.as_int()) : from.as_double(),
          .start_ns = from.start_time_unix_nano(),
          .time_ns = from.time_unix_nano()};
}

OtlpPoint point_of(const ExponentialHistogramDataPoint& from) {
  OtlpPoint point{.start_ns = from.start_time_unix_nano(),
                  .time_ns = from.time_unix_nano(),
                  .count = from.count(),
                  .sum = from.sum(),
                  .scale = from.scale()};
  std::uint64_t counted = from.zero_count();
  std::int32_t index = from.positive().offset();
  for (const std::uint64_t count : from.positive().bucket_counts()) {
    counted += count;
    if (count != 0) point.buckets[index] = count;
    ++index;
  }
  EXPECT_EQ(counted, point.count);
  return point;
}

template <typename Data>
void add_points(const Data& data, OtlpMetric& metric) {
  EXPECT_GT(data.data_points_size(), 0);
  for (const auto& from : data.data_points()) {
    const auto [at, is_new] = metric.points.emplace(attributes_of(from), point_of(from));
    EXPECT_TRUE(is_new);
    EXPECT_GT(at->second.time_ns, 0U);
  }
}

OtlpMetric metric_of(const Metric& from) {
  OtlpMetric metric{.unit = from.unit()};
  EXPECT_FALSE(from.description().empty());
  if (from.has_gauge()) {
    add_points(from.gauge(), metric);
  } else if (from.has_sum()) {
    metric.kind = OtlpMetric::Kind::counter;
    EXPECT_TRUE(from.sum().is_monotonic());
    EXPECT_EQ(from.sum().aggregation_temporality(), AGGREGATION_TEMPORALITY_CUMULATIVE);
    add_points(from.sum(), metric);
  } else {
    metric.kind = OtlpMetric::Kind::histogram;
    EXPECT_TRUE(from.has_exponential_histogram());
    EXPECT_EQ(from.exponential_histogram().aggregation_temporality(), AGGREGATION_TEMPORALITY_CUMULATIVE);
    add_points(from.exponential_histogram(), metric);
  }
  return metric;
}

}  // namespace

double OtlpPoint::quantile(double which) const {
  std::uint64_t below = 0;
  for (const auto& [index, number] : buckets) {
    below += number;
    if (static_cast<double>(below) >= which * static_cast<double>(count))
      return std::exp2(std::ldexp(static_cast<double>(index + 1), -scale));
  }
  return 0;
}

OtlpMetricsContent read_otlp_metrics(std::string_view request) {
  OtlpMetricsContent content;
  ExportMetricsServiceRequest message;
  EXPECT_TRUE(message.ParseFromArray(request.data(), static_cast<int>(request.size())));
  EXPECT_EQ(message.resource_metrics_size(), 1);
  for (const ResourceMetrics& resource : message.resource_metrics()) {
    content.resource = attributes_of(resource.resource());
    EXPECT_EQ(resource.scope_metrics_size(), 1);
    for (const ScopeMetrics& scope : resource.scope_metrics()) {
      EXPECT_EQ(scope.scope().name(), "rtev-bpf");
      for (const Metric& metric : scope.metrics())
        EXPECT_TRUE(content.metrics.emplace(metric.name(), metric_of(metric)).second) << metric.name();
    }
  }
  return content;
}

std::vector<OtlpSpan> read_otlp_spans(std::string_view request) {
  std::vector<OtlpSpan> spans;
  ExportTraceServiceRequest message;
  EXPECT_TRUE(message.ParseFromArray(request.data(), static_cast<int>(request.size())));
  for (const ResourceSpans& resource : message.resource_spans()) {
    for (const ScopeSpans& scope : resource.scope_spans()) {
      for (const Span& span : scope.spans()) {
        EXPECT_EQ(span.trace_id().size(), 16U);
        EXPECT_EQ(span.span_id().size(), 8U);
        EXPECT_EQ(span.kind(), 1);
        spans.push_back({.resource = attributes_of(resource.resource()),
                         .attributes = attributes_of(span),
                         .trace_id = span.trace_id(),
                         .span_id = span.span_id(),
                         .name = span.name(),
                         .start_ns = span.start_time_unix_nano(),
                         .end_ns = span.end_time_unix_nano()});
      }
    }
  }
  return spans;
}

}  // namespace rtev::test
