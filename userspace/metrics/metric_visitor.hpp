// SPDX-License-Identifier: MIT
// What metrics are made of, whatever they are written as.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "metrics/duration_histogram.hpp"

namespace rtev {

enum class MetricType : std::uint8_t { counter, gauge, histogram };

/// Metrics of one name. Names are those of Prometheus without the unit and without "_total".
struct MetricFamily {
  std::string_view name;
  std::string_view unit;  ///< "seconds", "bytes", or empty for a number of things
  std::string_view help;
  MetricType type = MetricType::counter;

  /// Amounts are ns.
  bool is_time() const { return unit == "seconds"; }
};

struct MetricLabel {
  std::string_view key, value;
};
/// Values are printable UTF-8.
using MetricLabels = std::span<const MetricLabel>;

/// Gets metrics: a family, then its values.
class MetricVisitor {
 public:
  virtual ~MetricVisitor() = default;
  virtual void family(const MetricFamily& family) = 0;
  /// Of a counter or gauge. ns where the unit is seconds.
  virtual void value(MetricLabels labels, std::int64_t amount) = 0;
  virtual void histogram(MetricLabels labels, const DurationHistogram& histogram) = 0;
};

}  // namespace rtev
