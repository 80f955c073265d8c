// SPDX-License-Identifier: MIT
// Computes pauses and phases from JSON lines, without code of the analyses, to check their reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// A completed span of the runtime.
struct PhaseSpan {
  pid_t pid = 0;
  int domain = 0;
  std::string name{};
  std::uint64_t begin = 0, end = 0;
  bool outermost = false;  ///< true: a pause

  std::uint64_t length() const { return end - begin; }
};

/// All spans in the order of their ends.
std::vector<PhaseSpan> phase_spans(const Trace& trace);
/// The spans that are pauses.
std::vector<PhaseSpan> pauses_of(const Trace& trace);

/// Time in each state of a thread between two moments, from its switches and wakeups, in ns.
struct ThreadTimes {
  std::uint64_t on_cpu = 0, runnable = 0, blocked = 0, unknown = 0;
};
/// False if switches of the thread are missing in the stream: the kernel sometimes skips some.
bool has_all_switches(const Trace& trace, pid_t tid);
/// Sums over the spans of thread `tid`.
ThreadTimes times_of(const Trace& trace, pid_t tid, const std::vector<PhaseSpan>& spans);

/// Compares a "distribution" of the latency report (count, total, mean, percentiles ...) with these durations, to three
/// significant digits. Returns what differs; empty if nothing does.
std::string difference(const Json& distribution, std::vector<std::uint64_t> lengths);

}  // namespace rtev::test
