// SPDX-License-Identifier: MIT
// The end of a live session: drain, release, summary.
#pragma once

#include <cstdint>

#include "session/live_sources.hpp"
#include "session/stream_output.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct ShutdownContext {
  std::uint64_t start_ns;  ///< of the session
  const Registry& registry;
  Sink& sink;
};

/// Reads what is left in all sources, releases all events, and gives the sink the summary, which it returns.
RunSummary shut_down(LiveSources& sources, StreamOutput& stream, const ShutdownContext& context);

}  // namespace rtev
