// SPDX-License-Identifier: MIT
#include "stream/thread_interval.hpp"

namespace rtev {

std::string_view to_string(ThreadState state) {
  switch (state) {
    case ThreadState::unknown:
      return "unknown";
    case ThreadState::on_cpu:
      return "on-cpu";
    case ThreadState::runnable:
      return "runnable";
    case ThreadState::sleeping:
      return "sleeping";
    case ThreadState::uninterruptible:
      return "uninterruptible";
    case ThreadState::stopped:
      return "stopped";
  }
  return "unknown";
}

void TimeSplit::add(ThreadState state, std::uint64_t ns) {
  switch (state) {
    case ThreadState::unknown:
      unknown += ns;
      return;
    case ThreadState::on_cpu:
      on_cpu += ns;
      return;
    case ThreadState::runnable:
      runnable += ns;
      return;
    case ThreadState::sleeping:
      sleeping += ns;
      return;
    case ThreadState::uninterruptible:
      uninterruptible += ns;
      return;
    case ThreadState::stopped:
      stopped += ns;
      return;
  }
}

TimeSplit& TimeSplit::operator+=(const TimeSplit& other) {
  on_cpu += other.on_cpu;
  runnable += other.runnable;
  sleeping += other.sleeping;
  uninterruptible += other.uninterruptible;
  stopped += other.stopped;
  unknown += other.unknown;
  return *this;
}

}  // namespace rtev
