// SPDX-License-Identifier: MIT
// What a ring that is read after the run does not hold any more.
#pragma once

#include "stream/sink.hpp"

namespace rtev {

/// True if the stream is the whole content of a ring file, not a trace: the summary of a trace lists the kernel's
/// buffers with their drops (also if zero), and its figures begin when a process was found. False for a recording that
/// lacks its end, where this is unknown.
inline bool is_whole_ring(const RunSummary& summary) {
  return summary.complete && summary.drops.empty();
}

/// Words of such a ring that were overwritten before it was read.
inline std::uint64_t missing_past(const RunSummary& summary, const Registry& registry) {
  std::uint64_t words = 0;
  if (!is_whole_ring(summary)) return words;
  for (const ProcessInfo& facts : registry.processes()) words += facts.words.before_attach;
  return words;
}

}  // namespace rtev
