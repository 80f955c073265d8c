// SPDX-License-Identifier: MIT
#include "analysis/latency/latency_figures.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace rtev {

void LatencyFigures::record(std::uint64_t begin_ns, std::uint64_t wall_ns, const TimeSplit& time) {
  if (wall.count() == 0 || wall_ns > wall.max()) longest_begin_ns = begin_ns;
  wall.record(wall_ns);
  split += time;
  if (time.unknown > 0) return;
  on_cpu.record(time.on_cpu);
  runnable.record(time.runnable);
  blocked.record(time.blocked());
}

void LatencyFigures::merge(const LatencyFigures& other) {
  if (wall.count() == 0 || other.wall.max() > wall.max()) longest_begin_ns = other.longest_begin_ns;
  wall.merge(other.wall);
  on_cpu.merge(other.on_cpu);
  runnable.merge(other.runnable);
  blocked.merge(other.blocked);
  split += other.split;
  below_min += other.below_min;
  std::ranges::transform(unfinished, other.unfinished, unfinished.begin(), std::plus{});
  lost_words += other.lost_words;
  unprobed += other.unprobed;
}

std::uint64_t LatencyFigures::unfinished_total() const {
  return std::accumulate(unfinished.begin(), unfinished.end(), std::uint64_t{0});
}

bool LatencyFigures::lower_bound() const {
  return lost_words > 0 || unprobed > 0 || unfinished_total() > unfinished[static_cast<std::size_t>(Unfinished::ended)];
}

}  // namespace rtev
