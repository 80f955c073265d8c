// SPDX-License-Identifier: MIT
#include "metrics/prometheus_text.hpp"

#include <array>

namespace rtev {
namespace {

std::string_view type_name(MetricType type) {
  static constexpr std::array<std::string_view, 3> names{"counter", "gauge", "histogram"};
  return names[static_cast<std::size_t>(type)];
}

/// The bounds of the classic buckets, in seconds.
constexpr std::array<std::string_view, DurationHistogram::bounds_ns.size()> bound_names{
    "1e-05", "2.5e-05", "5e-05", "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005",
    "0.01",  "0.025",   "0.05",  "0.1",    "0.25",    "0.5",    "1",     "2.5",    "10"};

/// Exact, without an exponent.
std::string seconds_text(std::uint64_t ns) {
  constexpr std::uint64_t second = 1'000'000'000;
  std::string text = std::to_string(ns / second);
  if (ns % second == 0) return text;
  text += '.' + std::to_string(second + ns % second).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace

void PrometheusText::family(const MetricFamily& family) {
  family_ = family;
  name_ = family.name;
  if (!family.unit.empty()) name_.append("_").append(family.unit);
  if (family.type == MetricType::counter) name_ += "_total";
  out_.add("# HELP ", name_, ' ', family.help, "\n# TYPE ", name_, ' ', type_name(family.type), '\n');
}

void PrometheusText::value(MetricLabels labels, std::int64_t amount) {
  sample("", labels, "",
         family_.is_time() && amount >= 0 ? seconds_text(static_cast<std::uint64_t>(amount)) : std::to_string(amount));
}

void PrometheusText::histogram(MetricLabels labels, const DurationHistogram& histogram) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bound_names.size(); ++i) {
    below += histogram.classic()[i];
    sample("_bucket", labels, bound_names[i], std::to_string(below));
  }
  const std::string count = std::to_string(histogram.count());
  sample("_bucket", labels, "+Inf", count);
  sample("_sum", labels, "", seconds_text(histogram.sum_ns()));
  sample("_count", labels, "", count);
}

void PrometheusText::sample(std::string_view suffix, MetricLabels labels, std::string_view bound,
                            std::string_view number) {
  out_.add(name_, suffix);
  char separator = '{';
  const auto label = [&](std::string_view key, std::string_view value) {
    out_.add(separator, key, "=\"");
    for (const char byte : value) {
      if (byte == '\\' || byte == '"') out_.add('\\');
      out_.add(byte);
    }
    out_.add('"');
    separator = ',';
  };
  for (const auto& [key, value] : labels) label(key, value);
  if (!bound.empty()) label("le", bound);
  out_.add(separator == ',' ? "} " : " ", number, '\n');
}

}  // namespace rtev
