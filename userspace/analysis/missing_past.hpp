// SPDX-License-Identifier: MIT
// What a ring that is read after the fact does not hold any more.
#pragma once

#include "sinks/sink.hpp"

namespace rtev {

/// True if the stream is a ring's whole content: who is traced while it runs is announced first, and its figures are
/// those since then.
inline bool is_whole_ring(const RunSummary& summary) {
  return summary.events[static_cast<std::size_t>(EventKind::process)] == 0;
}

/// Words that such a ring had overwritten before anybody read it.
inline std::uint64_t missing_past(const RunSummary& summary, const Registry& registry) {
  std::uint64_t words = 0;
  if (!is_whole_ring(summary)) return words;
  for (const ProcessFacts& facts : registry.processes()) words += facts.words.before_attach;
  return words;
}

}  // namespace rtev
