// SPDX-License-Identifier: MIT
// One run of the tracer as the command line wants it: what every command does that traces.
#pragma once

#include <functional>

#include "cli/options.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Where the stream goes. SIGPIPE is ignored meanwhile.
struct Tracing {
  Sink& sink;
  const Output& output;      ///< its failure ends the run
  bool owns_stdout = false;  ///< what the command says to stdout goes to stderr
  /// Called after the sink has got the summary, before the messages at the end.
  std::function<void(const RunSummary& summary, const Registry& registry)> conclude;
};

/// Traces until the options, a signal, the end of the command or the output's failure say so, and returns the exit
/// status: the command's where there is one. What failed of the output is left to the caller.
int trace(const Options& options, const Tracing& tracing);

}  // namespace rtev::cli
