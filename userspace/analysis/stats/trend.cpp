// SPDX-License-Identifier: MIT
#include "analysis/stats/trend.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace rtev {

void Trend::add(std::uint64_t time_ns, std::uint64_t value) {
  if (count_ > 0 && time_ns < samples_[count_ - 1].time_ns) return;
  // The first value stays as it is; the last one is always the present one.
  if (count_ > 1 && time_ns - samples_[count_ - 2].time_ns < period_ns_) {
    samples_[count_ - 1] = {.time_ns = time_ns, .value = value};
    return;
  }
  if (count_ == max_samples) {
    for (std::size_t i = 1; i < max_samples / 2; ++i) samples_[i] = samples_[2 * i];
    count_ = max_samples / 2;
    period_ns_ *= 2;
  }
  samples_[count_++] = {.time_ns = time_ns, .value = value};
}

std::optional<std::uint64_t> Trend::rise_per_second() const {
  constexpr std::uint64_t least_span_ns = 100'000'000;
  if (span_ns() < least_span_ns || last() <= first()) return std::nullopt;
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(last() - first()) * 1e9 / static_cast<double>(span_ns())));
}

bool Trend::rises_all_the_time() const {
  // The first quarter of a run is its start.
  constexpr std::size_t least_samples = 8, start_parts = 4, notable_parts = 5, fall_parts = 4;
  if (count_ < least_samples) return false;
  const std::span<const Sample> rest(samples_.data() + count_ / start_parts, count_ - count_ / start_parts);
  const std::uint64_t base = rest.front().value, end = rest.back().value;
  if (end < base + base / notable_parts) return false;
  const std::uint64_t most_fall = (end - base) / fall_parts;
  std::uint64_t greatest = 0;
  return std::ranges::all_of(rest, [&](const Sample& sample) {
    greatest = std::max(greatest, sample.value);
    return greatest - sample.value <= most_fall;
  });
}

}  // namespace rtev
