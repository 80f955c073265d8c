// SPDX-License-Identifier: MIT
#include "metrics/otlp.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <ranges>
#include <string_view>

#include "metrics/otlp_fields.hpp"

namespace rtev {
namespace {

using protobuf::Message;
using namespace otlp;

/// Realtime of a time of CLOCK_MONOTONIC.
std::uint64_t realtime(const RunHeader& run, std::uint64_t time_ns) {
  return run.start_realtime_ns + (time_ns - run.start_ns);
}

std::uint64_t seconds(std::uint64_t ns) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(ns) / 1e9);
}

/// How protocol buffers write signed numbers that may be negative.
std::uint32_t zigzag(std::int32_t number) {
  return static_cast<std::uint32_t>(number) << 1 ^ static_cast<std::uint32_t>(number >> 31);
}

template <typename Parent>
void attribute(Message<Parent>& parent, Parent field, std::string_view key, std::string_view value) {
  Message<KeyValue> pair(parent, field);
  pair.add_bytes(KeyValue::key, key);
  Message<AnyValue> any(pair, KeyValue::value);
  any.add_bytes(AnyValue::string_value, value);
}

template <typename Parent>
void attribute(Message<Parent>& parent, Parent field, std::string_view key, std::int64_t value) {
  Message<KeyValue> pair(parent, field);
  pair.add_bytes(KeyValue::key, key);
  Message<AnyValue> any(pair, KeyValue::value);
  any.add_number(AnyValue::int_value, value);
}

struct Service {
  std::string_view name, version{}, instance{};
};

/// What all metrics and spans of a service share; `contents`: messages with the tags of Scopes::contents.
void add_resource(Message<ExportRequest>& request, const RunHeader& run, const Service& service,
                  std::string_view contents_of_scope, TextBuffer& out) {
  Message<Resources> resources(request, ExportRequest::resources);
  {
    Message<Resource> resource(resources, Resources::resource);
    attribute(resource, Resource::attributes, "service.name", service.name);
    if (!service.version.empty()) attribute(resource, Resource::attributes, "service.version", service.version);
    if (!service.instance.empty()) attribute(resource, Resource::attributes, "service.instance.id", service.instance);
    attribute(resource, Resource::attributes, "host.name", run.host);
  }
  Message<Scopes> scopes(resources, Resources::scopes);
  {
    Message<Scope> scope(scopes, Scopes::scope);
    scope.add_bytes(Scope::name, "rtev-bpf");
    scope.add_bytes(Scope::version, run.version);
  }
  out.add(contents_of_scope);
}

/// "ocaml_gc_pause_duration": "ocaml.gc.pause.duration".
std::string otel_name(std::string_view name) {
  std::string dotted(name);
  std::ranges::replace(dotted, '_', '.');
  return dotted;
}

/// Units of UCUM. Numbers of things have none: "1" is for ratios, and Prometheus would add that to the name.
std::string_view otel_unit(std::string_view unit) {
  if (unit == "seconds") return "s";
  return unit == "bytes" ? "By" : "";
}

}  // namespace

OtlpMetrics::OtlpMetrics(const RunHeader& run, std::uint64_t now_ns, std::uint64_t since_ns)
    : run_(run), now_ns_(realtime(run, now_ns)) {
  // Later if the clock was set back meanwhile: collectors refuse what begins after its end.
  start_ns_ = std::min(since_ns, now_ns_);
}

void OtlpMetrics::family(const MetricFamily& family) {
  end_family();
  family_ = family;
}

void OtlpMetrics::value(MetricLabels labels, std::int64_t amount) {
  Message<Sum> points(points_);  // the field is that of Gauge, too
  Message<Number> point(points, Sum::data_points);
  for (const auto& [key, value] : labels) attribute(point, Number::attributes, key, value);
  if (family_.type == MetricType::counter) point.add_fixed(Number::start, start_ns_);
  point.add_fixed(Number::time, now_ns_);
  if (family_.is_time()) {
    point.add_fixed(Number::as_double, seconds(static_cast<std::uint64_t>(amount)));
  } else {
    point.add_fixed(Number::as_int, static_cast<std::uint64_t>(amount));
  }
}

void OtlpMetrics::histogram(MetricLabels labels, const DurationHistogram& histogram) {
  Message<ExponentialHistogram> points(points_);
  Message<HistogramPoint> point(points, ExponentialHistogram::data_points);
  for (const auto& [key, value] : labels) attribute(point, HistogramPoint::attributes, key, value);
  point.add_fixed(HistogramPoint::start, start_ns_);
  point.add_fixed(HistogramPoint::time, now_ns_);
  point.add_fixed(HistogramPoint::count, histogram.count());
  point.add_fixed(HistogramPoint::sum, seconds(histogram.sum_ns()));
  point.add_number(HistogramPoint::scale, zigzag(DurationHistogram::scale));
  const auto& all = histogram.exponential();
  const auto used = [](std::uint64_t count) { return count != 0; };
  const auto first = std::ranges::find_if(all, used);
  if (first == all.end()) return;
  const auto last = std::ranges::find_if(all | std::views::reverse, used).base();
  Message<Buckets> buckets(point, HistogramPoint::positive);
  buckets.add_number(Buckets::offset,
                     zigzag(DurationHistogram::first_index + static_cast<std::int32_t>(first - all.begin())));
  // Unpacked, which every reader takes as well.
  for (auto count = first; count != last; ++count) buckets.add_number(Buckets::counts, *count);
}

void OtlpMetrics::end_family() {
  if (points_.size() == 0) return;
  Message<Scopes> scopes(metrics_);
  Message<Metric> metric(scopes, Scopes::contents);
  metric.add_bytes(Metric::name, otel_name(family_.name));
  metric.add_bytes(Metric::description, family_.help);
  metric.add_bytes(Metric::unit, otel_unit(family_.unit));
  switch (family_.type) {
    case MetricType::gauge: {
      Message<otlp::Gauge> gauge(metric, Metric::gauge);
      metrics_.add(points_.text());
      break;
    }
    case MetricType::counter: {
      Message<Sum> sum(metric, Metric::sum);
      metrics_.add(points_.text());
      sum.add_number(Sum::temporality, cumulative);
      sum.add_number(Sum::is_monotonic, true);
      break;
    }
    case MetricType::histogram: {
      Message<ExponentialHistogram> histogram(metric, Metric::exponential_histogram);
      metrics_.add(points_.text());
      histogram.add_number(ExponentialHistogram::temporality, cumulative);
      break;
    }
  }
  points_.clear();
}

std::string OtlpMetrics::request() {
  end_family();
  TextBuffer out;
  {
    Message<ExportRequest> request(out);
    // Without an instance Prometheus takes the metrics of all hosts for the same ones.
    const Service service{.name = "rtev-bpf", .version = run_.version, .instance = run_.host};
    add_resource(request, run_, service, metrics_.text(), out);
  }
  return std::string(out.text());
}

std::string otlp_spans(std::span<const PauseSpan> pauses, const RunHeader& run) {
  TextBuffer out;
  Message<ExportRequest> request(out);
  for (const PauseSpan& pause : pauses) {
    std::array<char, 24> id{};  // of the trace, then of the span
    [[maybe_unused]] const ssize_t got = ::getrandom(id.data(), id.size(), 0);
    const std::string_view ids(id.data(), id.size());
    constexpr std::size_t trace_bytes = 16;
    TextBuffer content;
    {
      Message<Scopes> scopes(content);
      Message<Span> span(scopes, Scopes::contents);
      span.add_bytes(Span::trace_id, ids.substr(0, trace_bytes));
      span.add_bytes(Span::span_id, ids.substr(trace_bytes));
      span.add_bytes(Span::name, "GC pause: " + pause.kind);
      span.add_number(Span::kind, internal_span);
      span.add_fixed(Span::start, realtime(run, pause.begin_ns));
      span.add_fixed(Span::end, realtime(run, pause.end_ns));
      attribute(span, Span::attributes, "ocaml.gc.pause.kind", pause.kind);
      attribute(span, Span::attributes, "ocaml.gc.pause.cause", pause.verdict);
      attribute(span, Span::attributes, "ocaml.domain", std::int64_t{pause.domain});
      attribute(span, Span::attributes, "group", pause.group);
      attribute(span, Span::attributes, "process.pid", std::int64_t{pause.pid});
      attribute(span, Span::attributes, "process.executable.name", pause.program);
    }
    const Service service{.name = pause.service.empty() ? pause.group : pause.service, .version = pause.version};
    add_resource(request, run, service, content.text(), out);
  }
  return std::string(out.text());
}

}  // namespace rtev
