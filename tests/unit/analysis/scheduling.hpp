// SPDX-License-Identifier: MIT
// Scheduler records made by hand, for tests of analyses.
#pragma once

#include <cstdint>
#include <string_view>

#include "stream/records.hpp"

namespace rtev::test {

inline Thread a_thread(std::int32_t pid, std::int32_t tid, std::int32_t domain = -1, std::string_view comm = "server",
                       bool tracked = true) {
  Thread thread{};
  thread.pid = pid;
  thread.tid = tid;
  thread.domain = domain;
  thread.priority = 120;
  thread.role = ThreadRole::mutator;
  thread.tracked = tracked;
  for (std::size_t i = 0; i < comm.size() && i < thread.comm_bytes.size(); ++i) thread.comm_bytes[i] = comm[i];
  return thread;
}

/// The idle task, which has every cpu that nobody else has.
inline Thread nobody() {
  return a_thread(0, 0, -1, "swapper", false);
}

inline Thread competitor() {
  return a_thread(999, 999, -1, "hog", false);
}

inline SchedSwitch leaves(const Thread& thread, LeftState state, std::uint32_t cpu = 0, const Thread& next = nobody()) {
  return {.cpu = cpu, .state = state, .prev = thread, .next = next};
}

/// The thread blocks in a system call.
inline SchedSwitch blocks(const Thread& thread, Syscall syscall, LeftState state = LeftState::sleeping,
                          std::uint32_t cpu = 0) {
  return {.cpu = cpu, .state = state, .syscall = syscall, .prev = thread, .next = nobody()};
}

inline SchedSwitch enters(const Thread& thread, std::uint32_t cpu = 0, const Thread& prev = nobody()) {
  return {.cpu = cpu, .state = LeftState::preempted, .prev = prev, .next = thread};
}

inline Wakeup wakes(const Thread& woken, const Thread& by = nobody(), std::uint32_t cpu = 0) {
  return {.cpu = cpu, .woken = woken, .by = by};
}

}  // namespace rtev::test
