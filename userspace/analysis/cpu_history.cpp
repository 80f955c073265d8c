// SPDX-License-Identifier: MIT
#include "analysis/cpu_history.hpp"

namespace rtev {

void CpuHistory::add(const CpuInterval& interval) {
  auto known = cpus_.find(interval.cpu);
  if (known == cpus_.end()) {
    if (cpus_.size() >= max_cpus) return;
    known = cpus_.try_emplace(interval.cpu).first;
  }
  Recent& recent = known->second;
  recent.intervals[recent.count++ % intervals_per_cpu] = interval;
}

CpuWait CpuHistory::wait_of(const CpuInterval& interval, std::uint64_t begin_ns, std::uint64_t end_ns) {
  CpuWait wait{
      .ns = end_ns - begin_ns, .cpu = static_cast<std::int32_t>(interval.cpu & INT32_MAX), .by = interval.first};
  if (interval.gapless && interval.first.tid == interval.last.tid) return wait;
  // If other threads may have run in between, the first is certain only at the begin, the last only at the end.
  const bool is_from_begin = begin_ns == interval.begin_ns, is_to_end = end_ns == interval.end_ns;
  if (is_from_begin && is_to_end && interval.first.tid == interval.last.tid) {
    wait.had = CpuWait::Had::ends;
  } else if (is_from_begin) {
    wait.had = CpuWait::Had::first;
  } else if (is_to_end) {
    wait.had = CpuWait::Had::last;
    wait.by = interval.last;
  } else {
    wait.by.reset();
  }
  return wait;
}

}  // namespace rtev
