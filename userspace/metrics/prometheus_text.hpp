// SPDX-License-Identifier: MIT
// Metrics in the text format of Prometheus, version 0.0.4.
#pragma once

#include <string>
#include <string_view>

#include "base/text_buffer.hpp"
#include "metrics/metric_visitor.hpp"

namespace rtev {

/// The Content-Type of the format: Prometheus 3 refuses a scrape without it.
inline constexpr const char* prometheus_content_type = "text/plain; version=0.0.4; charset=utf-8";

class PrometheusText final : public MetricVisitor {
 public:
  void family(const MetricFamily& family) override;
  void value(MetricLabels labels, std::int64_t amount) override;
  void histogram(MetricLabels labels, const DurationHistogram& histogram) override;

  std::string_view text() const { return out_.text(); }

 private:
  void sample(std::string_view suffix, MetricLabels labels, std::string_view bound, std::string_view number);

  TextBuffer out_;
  MetricFamily family_{};
  std::string name_;  ///< of family_, with its unit
};

}  // namespace rtev
