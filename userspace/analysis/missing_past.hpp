// SPDX-License-Identifier: MIT
// What a ring that is read after the fact does not hold any more.
#pragma once

#include "stream/sink.hpp"

namespace rtev {

/// True if the stream is a ring's whole content: who traces says at the end what kernel buffers dropped, be it nothing,
/// and figures are those since a process was found. Of a recording that lacks its end that is not known, nor is what a
/// ring had overwritten.
inline bool is_whole_ring(const RunSummary& summary) {
  return summary.complete && summary.drops.empty();
}

/// Words that such a ring had overwritten before anybody read it.
inline std::uint64_t missing_past(const RunSummary& summary, const Registry& registry) {
  std::uint64_t words = 0;
  if (!is_whole_ring(summary)) return words;
  for (const ProcessInfo& facts : registry.processes()) words += facts.words.before_attach;
  return words;
}

}  // namespace rtev
