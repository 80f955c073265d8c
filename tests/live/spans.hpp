// SPDX-License-Identifier: MIT
// Pauses and phases, computed from JSON lines with no code of the analyses: what their reports are compared with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// A span of the runtime that ended.
struct PhaseSpan {
  pid_t pid = 0;
  int domain = 0;
  std::string name{};
  std::uint64_t begin = 0, end = 0;
  bool outermost = false;  ///< a pause

  std::uint64_t length() const { return end - begin; }
};

/// All of them in the order of their ends.
std::vector<PhaseSpan> phase_spans(const Trace& trace);
/// Those that are pauses.
std::vector<PhaseSpan> pauses_of(const Trace& trace);

/// What a thread did between two moments, by its switches and wakeups: sums of ns.
struct ThreadTimes {
  std::uint64_t on_cpu = 0, runnable = 0, blocked = 0, unknown = 0;
};
/// False where switches of the thread are missing in the stream: the kernel skips some now and then.
bool has_all_switches(const Trace& trace, pid_t tid);
/// The time of each span together, of the thread `tid`.
ThreadTimes times_of(const Trace& trace, pid_t tid, const std::vector<PhaseSpan>& spans);

/// Empty if a "distribution" of the latency report (count, total, mean, percentiles ...) is that of these lengths to
/// three significant digits; else what is wrong.
std::string difference(const Json& distribution, std::vector<std::uint64_t> lengths);

}  // namespace rtev::test
