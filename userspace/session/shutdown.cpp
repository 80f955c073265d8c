// SPDX-License-Identifier: MIT
#include "session/shutdown.hpp"

#include "base/clock.hpp"
#include "session/run_header.hpp"

namespace rtev {

RunSummary shut_down(LiveSources& sources, StreamOutput& stream, const ShutdownContext& context) {
  sources.drain();
  stream.release_all();
  RunSummary summary;
  summary.start_ns = context.start_ns;
  summary.end_ns = monotonic_ns();
  stream.add_figures(summary);
  sources.add_figures(summary);
  fill_own_cost(summary);
  context.sink.summary(summary, context.registry);
  context.sink.flush();
  return summary;
}

}  // namespace rtev
