// SPDX-License-Identifier: MIT
#include "metrics/duration_histogram.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating_sum.hpp"

namespace rtev {
namespace {

std::size_t exponential_bucket(std::uint64_t ns) {
  if (ns == 0) return 0;
  const double index = std::ceil(std::log2(static_cast<double>(ns) / 1e9) * (1 << DurationHistogram::scale)) - 1;
  const double last = DurationHistogram::bucket_count - 1;
  return static_cast<std::size_t>(std::clamp(index - DurationHistogram::first_index, 0.0, last));
}

}  // namespace

void DurationHistogram::record(std::uint64_t ns) {
  ++count_;
  sum_ns_ = saturating_sum(sum_ns_, ns);
  ++classic_[static_cast<std::size_t>(std::ranges::lower_bound(bounds_ns, ns) - bounds_ns.begin())];
  ++exponential_[exponential_bucket(ns)];
}

}  // namespace rtev
