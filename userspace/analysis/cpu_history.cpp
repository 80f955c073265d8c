// SPDX-License-Identifier: MIT
#include "analysis/cpu_history.hpp"

#include <limits>

namespace rtev {

void CpuHistory::see(std::uint64_t time_ns, const SchedSwitch& change) {
  sees_all_ = sees_all_ || (!change.prev.tracked && !change.next.tracked);
  auto known = cpus_.find(change.cpu);
  if (known == cpus_.end()) {
    if (cpus_.size() >= most_cpus) return;
    known = cpus_.try_emplace(change.cpu).first;
  }
  Turns& turns = known->second;
  if (turns.count > 0) {
    Turn& ends = turns.turns[(turns.count - 1) % turns_of_a_cpu];
    if (time_ns < ends.begin_ns) return;  // overtaken by later ones
    ends.end_ns = time_ns;
    ends.last = change.prev;
  }
  turns.turns[turns.count++ % turns_of_a_cpu] = {.begin_ns = time_ns,
                                                 .end_ns = std::numeric_limits<std::uint64_t>::max(),
                                                 .first = change.next,
                                                 .last = change.next,
                                                 .gapless = sees_all_ || change.next.tracked};
}

CpuWait CpuHistory::wait_of(const Turn& turn, std::int32_t cpu, std::uint64_t begin_ns, std::uint64_t end_ns) {
  CpuWait wait{.ns = end_ns - begin_ns, .cpu = cpu, .by = turn.first};
  if (turn.gapless && turn.first.tid == turn.last.tid) return wait;
  // Where others may have come between the first is certain at the begin, the last at the end.
  if (begin_ns == turn.begin_ns) {
    wait.had = CpuWait::Had::first;
  } else if (end_ns == turn.end_ns) {
    wait.had = CpuWait::Had::last;
    wait.by = turn.last;
  } else {
    wait.by.reset();
  }
  return wait;
}

}  // namespace rtev
