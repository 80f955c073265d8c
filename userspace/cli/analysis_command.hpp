// SPDX-License-Identifier: MIT
// What latency, pauses and stats share: their stream comes from tracing or from a recording.
#pragma once

#include <functional>
#include <string>

#include "cli/options.hpp"
#include "formats/output/output.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Feeds the sink from options.input, or by tracing if that is empty. At the end, while processes can still be named,
/// `report` is called once and what it returns is written. Returns the exit status.
int analyse(const AnalysisOptions& options, const Invocation& invocation, Sink& sink, FdOutput& output,
            const std::function<std::string(const Registry& registry)>& report);

}  // namespace rtev::cli
