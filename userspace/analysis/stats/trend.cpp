// SPDX-License-Identifier: MIT
#include "analysis/stats/trend.hpp"

#include <algorithm>
#include <cmath>

namespace rtev {

void Trend::add(std::uint64_t time_ns, std::uint64_t value) {
  if (count_ > 0 && time_ns < samples_[count_ - 1].time_ns) return;
  if (count_ > 0 && time_ns - present_ns_ < at_once_ns) {
    samples_[count_ - 1] = {.time_ns = time_ns, .value = value, .least = std::min(least_before_, value)};
    return;
  }
  present_ns_ = time_ns;
  // The first value stays as it is; the last one is always the present one.
  if (count_ > 1 && time_ns - samples_[count_ - 2].time_ns < period_ns_) {
    Sample& present = samples_[count_ - 1];
    least_before_ = present.least;
    present = {.time_ns = time_ns, .value = value, .least = std::min(present.least, value)};
    return;
  }
  least_before_ = UINT64_MAX;
  if (count_ == max_samples) {
    for (std::size_t i = 1; i < max_samples / 2; ++i) {
      const std::uint64_t least = std::min(samples_[2 * i - 1].least, samples_[2 * i].least);
      samples_[i] = samples_[2 * i];
      samples_[i].least = least;
    }
    count_ = max_samples / 2;
    period_ns_ *= 2;
  }
  samples_[count_++] = {.time_ns = time_ns, .value = value, .least = value};
}

std::optional<std::uint64_t> Trend::rise_per_second() const {
  constexpr std::uint64_t least_span_ns = 100'000'000;
  if (span_ns() < least_span_ns || last() <= first()) return std::nullopt;
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(last() - first()) * 1e9 / static_cast<double>(span_ns())));
}

bool Trend::rises_all_the_time() const {
  constexpr std::uint64_t least_rise = 131'072, heap_parts = 100, step_parts = 4;
  constexpr std::size_t least_samples = 8, quarters = 4;
  if (count_ < least_samples || is_short()) return false;
  std::array<std::uint64_t, quarters> least{};
  least.fill(UINT64_MAX);
  // The time of a sample is the end of what it stands for: one at the end of a quarter belongs to it.
  const std::uint64_t quarter_ns = span_ns() / quarters + 1;
  for (const Sample& sample : std::span{samples_.data(), count_}) {
    std::uint64_t& of_quarter = least[(sample.time_ns - samples_.front().time_ns) / quarter_ns];
    of_quarter = std::min(of_quarter, sample.least);
  }
  if (std::ranges::find(least, UINT64_MAX) != least.end()) return false;
  // The first quarter may be the start of the program: how far it rose then tells nothing.
  if (least[1] <= least[0] || least[2] <= least[1] || least[3] <= least[2]) return false;
  const std::uint64_t rise = least[3] - least[1], least_step = rise / step_parts;
  return rise >= std::max(least_rise, least[3] / heap_parts) && least[2] - least[1] >= least_step &&
         least[3] - least[2] >= least_step;
}

}  // namespace rtev
