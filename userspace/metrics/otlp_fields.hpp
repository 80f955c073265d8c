// SPDX-License-Identifier: MIT
// Numbers of the fields of OTLP, as in opentelemetry-proto 1.x
// (opentelemetry/proto/{common,resource,metrics,trace}/v1).
#pragma once

#include "base/protobuf_message.hpp"

namespace rtev::otlp {

using protobuf::Tag;

enum class ExportRequest : Tag { resources = 1 };  ///< of metrics and of traces
enum class Resources : Tag { resource = 1, scopes = 2 };
enum class Resource : Tag { attributes = 1 };
enum class Scopes : Tag { scope = 1, contents = 2 };
enum class Scope : Tag { name = 1, version = 2 };
enum class KeyValue : Tag { key = 1, value = 2 };
enum class AnyValue : Tag { string_value = 1, int_value = 3 };
enum class Metric : Tag { name = 1, description = 2, unit = 3, gauge = 5, sum = 7, exponential_histogram = 10 };
enum class Gauge : Tag { data_points = 1 };
enum class Sum : Tag { data_points = 1, temporality = 2, is_monotonic = 3 };
enum class Number : Tag { start = 2, time = 3, as_double = 4, as_int = 6, attributes = 7 };
enum class ExponentialHistogram : Tag { data_points = 1, temporality = 2 };
enum class HistogramPoint : Tag {
  attributes = 1,
  start = 2,
  time = 3,
  count = 4,
  sum = 5,
  scale = 6,
  positive = 8,
};
enum class Buckets : Tag { offset = 1, counts = 2 };
enum class Span : Tag { trace_id = 1, span_id = 2, name = 5, kind = 6, start = 7, end = 8, attributes = 9 };

inline constexpr int cumulative = 2;     ///< AggregationTemporality
inline constexpr int internal_span = 1;  ///< SpanKind

}  // namespace rtev::otlp
