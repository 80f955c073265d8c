// SPDX-License-Identifier: MIT
#include "analysis/latency/distribution_json.hpp"

#include <array>
#include <charconv>
#include <string>

#include "analysis/latency/latency_figures.hpp"

namespace rtev {
namespace {

/// "99.99", "100": the shortest form.
std::string shortest(double number) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), written.ptr};
}

}  // namespace

void add_distribution(JsonWriter& out, const Histogram& values) {
  out.member("count", values.count());
  out.member("total_ns", values.total());
  if (values.count() == 0) return;
  out.member("mean_ns", values.mean());
  out.member("stddev_ns", values.standard_deviation());
  out.member("min_ns", values.min());
  out.member("max_ns", values.max());
  out.key("percentiles_ns").object([&] {
    for (const double percentile : latency_percentiles) {
      out.member(shortest(percentile), values.known_percentile(percentile));
    }
  });
}

}  // namespace rtev
